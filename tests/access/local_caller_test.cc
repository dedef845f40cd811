#include "access/local_caller.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

HttpRequest local_request(std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpRequest request;
  request.is_from_this_machine = true;
  request.headers = std::move(headers);
  request.headers.emplace_back("host", "localhost:8600");
  return request;
}

}  // namespace

TEST_CASE("a local program is told apart from another machine, a page and a foreign name") {
  CHECK(check_local_caller(local_request()).ok());
  CHECK(check_local_caller(local_request({{"origin", "http://localhost:8600"}})).ok());
  CHECK(!check_local_caller(local_request({{"origin", "http://localhost:3000"}})).ok());
  CHECK(!check_local_caller(local_request({{"origin", "null"}})).ok());
  HttpRequest far = local_request();
  far.is_from_this_machine = false;
  CHECK(check_local_caller(far).error().message.find("another machine") != std::string::npos);
  HttpRequest named = local_request();
  named.headers = {{"host", "evil.example"}};
  CHECK(!check_local_caller(named).ok());
}

TEST_CASE("any header that a proxy adds gives it away") {
  for (const char* name : {"via",
                           "forwarded",
                           "x-forwarded-for",
                           "x-forwarded-proto",
                           "x-forwarded-host",
                           "x-forwarded-port",
                           "x-forwarded-server",
                           "x-forwarded-anything",
                           "x-real-ip",
                           "x-client-ip",
                           "x-cluster-client-ip",
                           "x-original-forwarded-for",
                           "cf-connecting-ip",
                           "cf-ray",
                           "true-client-ip",
                           "fly-client-ip",
                           "fastly-client-ip",
                           "x-envoy-external-address",
                           "x-amzn-trace-id",
                           "tailscale-user-login",
                           "proxy-connection",
                           "cdn-loop"}) {
    CAPTURE(name);
    const HttpRequest request = local_request({{name, "x"}});
    CHECK(came_through_proxy(request));
    const auto refused = check_local_caller(request);
    REQUIRE(!refused.ok());
    CHECK(refused.error().message.find("through a proxy") != std::string::npos);
  }
  for (const char* name : {"authorization", "x-api-key", "x-request-id", "x-stainless-os",
                           "user-agent", "accept", "cookie", "sec-fetch-site"}) {
    CHECK_MESSAGE(!came_through_proxy(local_request({{name, "x"}})), name);
  }
}

}  // namespace lockstep
