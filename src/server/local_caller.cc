#include "server/local_caller.h"

#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

bool is_letterless(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

ApiError refused(std::string reason) {
  return {403, "only this machine's own programs may ask for this: " + std::move(reason), "",
          "not_local"};
}

}  // namespace

bool is_loopback_authority(std::string_view authority) {
  if (authority == "[::1]" || authority.starts_with("[::1]:")) return true;
  const std::string_view host = authority.substr(0, authority.find(':'));
  return host == "localhost" || (host.starts_with("127.") && is_letterless(host));
}

ApiResult<Ok> check_local_caller(const HttpRequest& request) {
  if (!request.is_from_this_machine) return refused("the request comes from another machine");
  for (const char* name : {"forwarded", "x-forwarded-for", "x-real-ip"}) {
    if (!request.header(name).empty()) return refused("the request came through a proxy");
  }
  const std::string_view host = request.header("host");
  if (!is_loopback_authority(host)) {
    return refused("its Host must be localhost or a loopback address");
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != "http://" + std::string(host)) {
    return refused("a page of another site asks for it");
  }
  return Ok{};
}

}  // namespace lockstep
