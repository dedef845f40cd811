#include "server/access_control.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hasher.h"
#include "server/local_caller.h"

namespace lockstep {
namespace {

constexpr std::string_view kAnyOrigin = "*";
constexpr const char* kPreflightSeconds = "600";

bool is_same_letters(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

// "Authorization: Bearer KEY" as OpenAI's clients send it, "x-api-key: KEY" as Anthropic's do.
std::string_view key_in(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view text = request.header("authorization");
  if (text.size() > kScheme.size() && is_same_letters(text.substr(0, kScheme.size()), kScheme)) {
    text.remove_prefix(kScheme.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text;
  }
  return request.header("x-api-key");
}

// Where a page comes from this server itself: the status page.
bool is_own_page(const HttpRequest& request, std::string_view origin) {
  const std::string_view host = request.header("host");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host) return true;
  }
  return false;
}

uint64_t address_id(std::string_view address) {
  const Digest hash = sha256(std::as_bytes(std::span(address)));
  uint64_t id = 0;
  std::memcpy(&id, hash.data(), sizeof id);
  return std::max<uint64_t>(id, 1);
}

ApiError no_key(bool has_one) {
  return {401,
          has_one ? "this API key is not known here: `lockstep key add NAME` on the node makes one"
                  : "an API key is needed, as `Authorization: Bearer KEY` or `x-api-key: KEY`",
          "", "invalid_api_key"};
}

}  // namespace

Result<std::unique_ptr<AccessControl>> AccessControl::open(AccessOptions options) {
  KeyRing keys = TRY(KeyRing::open(options.keys));
  return std::unique_ptr<AccessControl>(new AccessControl(std::move(options), std::move(keys)));
}

Status AccessControl::check_host(const std::string& host) const {
  const bool is_loopback = host == "::1" || is_loopback_authority(host);
  if (is_loopback || options_.is_open || !keys_.is_empty()) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--host {} lets other machines in, and there is no API key: make one "
                           "with `lockstep key add NAME`, or give --open to answer whoever reaches "
                           "the port",
                           host)};
}

ApiResult<HttpReply::Terms> AccessControl::admit(const HttpRequest& request, RouteAccess access) {
  keys_.refresh();
  HttpReply::Terms terms;
  terms.headers = headers(request);
  const std::string_view origin = request.header("origin");
  const bool is_foreign_page =
      !origin.empty() && !is_own_page(request, origin) && !is_allowed_origin(origin);
  // A page that has a key was given it; any other may be anybody's, in a browser that happens to
  // reach this node.
  if (is_foreign_page && access != RouteAccess::kAnybody &&
      keys_.find(key_in(request)) == nullptr) {
    return ApiError{403,
                    "a page of another site asks for this; `lockstep serve --allow-origin ORIGIN` "
                    "would let it",
                    "", "origin_not_allowed"};
  }
  terms.caller = TRY(caller(request, access));
  if (access == RouteAccess::kUse) {
    terms.permit = TRY(limiter_.admit(terms.caller, RequestLimiter::Clock::now()));
  }
  return terms;
}

ApiResult<uint64_t> AccessControl::caller(const HttpRequest& request, RouteAccess access) const {
  const std::string_view text = key_in(request);
  if (const ApiKey* key = keys_.find(text)) return key->id();
  if (keys_.is_empty()) {
    TRY(check_without_keys(request, access));
  } else if (access == RouteAccess::kUse ||
             (access == RouteAccess::kLook && !check_local_caller(request).ok())) {
    return no_key(!text.empty());
  }
  return address_id(request.address);
}

ApiResult<Ok> AccessControl::check_without_keys(const HttpRequest& request,
                                                RouteAccess access) const {
  if (access == RouteAccess::kAnybody || options_.is_open) return Ok{};
  if (!request.is_from_this_machine) {
    return ApiError{403,
                    "other machines need an API key, and there is none: `lockstep key add NAME` on "
                    "the node makes one",
                    "", "no_api_keys"};
  }
  // A page whose name somebody's DNS has made this machine's address is read by the browser as if
  // it came from here; what tells is the name.
  if (is_loopback_authority(request.header("host"))) return Ok{};
  return ApiError{403,
                  "without API keys the Host of a request must be localhost or a loopback address: "
                  "`lockstep key add NAME` makes a key",
                  "", "host_not_allowed"};
}

bool AccessControl::is_allowed_origin(std::string_view origin) const {
  return std::any_of(
      options_.origins.begin(), options_.origins.end(),
      [&](const std::string& allowed) { return allowed == kAnyOrigin || allowed == origin; });
}

std::vector<std::pair<std::string, std::string>> AccessControl::headers(
    const HttpRequest& request) const {
  if (options_.origins.empty()) return {};
  std::vector<std::pair<std::string, std::string>> list{{"Vary", "Origin"}};
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !is_allowed_origin(origin)) return list;
  list.emplace_back("Access-Control-Allow-Origin", origin);
  list.emplace_back("Access-Control-Expose-Headers", "Retry-After, x-lockstep-ignored-fields");
  return list;
}

std::optional<HttpResponse> AccessControl::preflight(const HttpRequest& request) const {
  const std::string_view method = request.header("access-control-request-method");
  const std::string_view origin = request.header("origin");
  if (request.method != "OPTIONS" || method.empty() || !is_allowed_origin(origin)) {
    return std::nullopt;
  }
  HttpResponse response{.status = 200, .content_type = "", .body = "", .headers = headers(request)};
  const std::string_view asked = request.header("access-control-request-headers");
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                asked.empty() ? "authorization, content-type, x-api-key" : asked);
  response.headers.emplace_back("Access-Control-Max-Age", kPreflightSeconds);
  return response;
}

}  // namespace lockstep
