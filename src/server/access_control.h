// AccessControl: who may ask this node for what, before a request is read: API keys, where there
// are any; programs of this machine alone, where there are none; web pages only where they were
// allowed; and how much each client may ask for. Used by routes.cc, on the thread of the HTTP
// server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"
#include "server/api_keys.h"
#include "server/errors.h"
#include "server/request_limiter.h"

namespace lockstep {

struct AccessOptions {
  std::filesystem::path keys;        // the file of API keys; empty: there are none
  bool is_open = false;              // without keys other machines may ask too
  std::vector<std::string> origins;  // whose web pages may ask, as "https://example.org"; "*": any
  RequestLimiter::Limits limits;
};

// What a route asks of who calls it.
enum class RouteAccess : uint8_t {
  kAnybody,  // says nothing that matters, or looks at its callers itself
  kLook,     // a key, or a program of this machine
  kUse,      // a key where there are any; and it counts against the client's limits
};

class AccessControl {
 public:
  static Result<std::unique_ptr<AccessControl>> open(AccessOptions options);

  // kInvalidArgument where a server on `host` could be reached by other machines, though nothing
  // says that they may ask: neither a key nor is_open.
  Status check_host(const std::string& host) const;

  // 401, 403 or 429; else what goes for the answer: whose it is, what counts it, and the headers
  // that let a page read it. They go for a refusal too, as far as `headers` has them.
  ApiResult<HttpReply::Terms> admit(const HttpRequest& request, RouteAccess access);
  // Of every answer to a request, a refusal too.
  std::vector<std::pair<std::string, std::string>> headers(const HttpRequest& request) const;

  // The answer to a browser that asks, before a page's request, whether it may be made; nullopt: it
  // asks nothing of the kind.
  std::optional<HttpResponse> preflight(const HttpRequest& request) const;

 private:
  AccessControl(AccessOptions options, KeyRing keys)
      : options_(std::move(options)), keys_(std::move(keys)), limiter_(options_.limits) {}

  bool is_allowed_origin(std::string_view origin) const;
  ApiResult<uint64_t> caller(const HttpRequest& request, RouteAccess access) const;
  ApiResult<Ok> check_without_keys(const HttpRequest& request, RouteAccess access) const;

  const AccessOptions options_;
  KeyRing keys_;
  RequestLimiter limiter_;
};

}  // namespace lockstep
