#include "access/local_caller.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "access/host_names.h"

namespace lockstep {
namespace {

// Prefixes of headers that only proxies and their networks add, in lower case. Prefixes, because
// each product adds a family of them.
constexpr std::string_view kProxyHeaders[] = {
    "via",
    "forwarded",
    "x-forwarded",
    "x-real-",
    "x-client-ip",
    "client-ip",
    "x-cluster-",
    "x-original-",
    "x-proxy",
    "proxy-",
    "x-remote-",
    "true-client-",
    "cf-",
    "cdn-",
    "fly-",
    "fastly-",
    "akamai-",
    "x-akamai-",
    "incap-",
    "x-sucuri-",
    "x-envoy-",
    "x-amzn-",
    "x-amz-cf-",
    "x-azure-",
    "x-arr-",
    "x-appengine-",
    "x-cloud-trace",
    "x-vercel-",
    "x-nf-",
    "x-ngrok-",
    "tailscale-",
    "x-tailscale-",
    "x-traefik-",
    "x-varnish",
    "x-haproxy-",
    "x-nginx-",
    "x-scheme",
    "x-host",
    "x-server-",
    "x-rewrite-",
    "x-request-start",
    "x-ssl-",
    "x-tls-",
    "front-end-https",
};

ApiError refused(std::string_view reason) {
  return {403, "only this machine's own programs may ask for this: " + std::string(reason), "",
          "not_local"};
}

}  // namespace

bool came_through_proxy(const HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return std::any_of(std::begin(kProxyHeaders), std::end(kProxyHeaders),
                       [&](std::string_view prefix) { return header.first.starts_with(prefix); });
  });
}

ApiResult<Ok> check_local_caller(const HttpRequest& request) {
  if (!request.is_from_this_machine) return refused("the request comes from another machine");
  if (came_through_proxy(request)) return refused("the request came through a proxy");
  const std::string_view host = request.header("host");
  if (!is_loopback_authority(host)) {
    return refused("its Host must be localhost or a loopback address");
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != "http://" + std::string(host)) {
    return refused("a page of another site sent the request");
  }
  return Ok{};
}

}  // namespace lockstep
