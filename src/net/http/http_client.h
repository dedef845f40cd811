// One HTTP/1.1 request to another server and its whole answer: blocking, with one deadline for all
// of it. Any thread. Hides Asio, which only net/ uses. Used by `lockstep status`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct HttpCall {
  // Numeric, "localhost" (both addresses are tried) or a name. The system's name lookup can take
  // longer than the deadline.
  std::string host = "localhost";
  uint16_t port = 0;
  std::string method = "GET";
  std::string target = "/";                                  // path and query, percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;  // Host and Content-Length are added
  std::string body;
  // Instead of `body`, for an HttpStream: several calls send the same one without a copy.
  std::shared_ptr<const std::string> shared_body = {};
  std::chrono::milliseconds timeout{5'000};
  size_t body_bytes_max = size_t{16} << 20;  // of the answer
};

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // Empty if there is no such header. `name` in lower case.
  std::string_view header(std::string_view name) const;
};

// Any status is an answer. kPeerLost: no connection, or it broke off; kTimeout; kExhausted: the
// answer is too long; kCorrupt: not valid HTTP; kInvalidArgument: the call cannot be sent.
Result<HttpAnswer> call_http(const HttpCall& call);

}  // namespace lockstep
