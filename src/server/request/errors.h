// Errors in the APIs' formats, OpenAI's unless stated otherwise: {"error": {"message", "type",
// "param", "code"}} and an HTTP status. The only place that maps an ErrorCode to a status. Used by
// every route.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "access/api_error.h"
#include "base/result.h"
#include "net/http/http_server.h"

namespace lockstep {

// The API whose error format the client expects.
enum class ErrorStyle : uint8_t {
  kOpenAi,
  kOllama,     // {"error": "a sentence"}
  kAnthropic,  // {"type": "error", "error": {"type", "message"}, "request_id"}
};
// For a request to this path, whether the route exists or not.
ErrorStyle error_style_of(std::string_view path);
// The same, but a header identifies clients of Anthropic's API on all routes except Ollama's.
ErrorStyle error_style_of(const HttpRequest& request);

ApiError to_api_error(const Error& error);
// Checks the calling thread's work (base/threads/work.h): 413 once its budget is spent, 503 (which
// no client reads) once it is cancelled. Called after each part of reading a request, even a
// successful one: a result that Work::is_over() cut short is incomplete.
ApiResult<Ok> check_work();
ApiError bad_field(std::string param, std::string message);
// "\"name\" is required".
ApiError missing_field(std::string name);
ApiError unsupported_field(std::string param, std::string message);

// `request_id` is included if the API does so, unless it is empty.
std::string error_json(const ApiError& error, ErrorStyle style = ErrorStyle::kOpenAi,
                       std::string_view request_id = "");
// 429 and 503 carry Retry-After, 401 WWW-Authenticate. Anthropic's clients get their own status,
// 529, for 503.
HttpResponse error_response(const ApiError& error, ErrorStyle style = ErrorStyle::kOpenAi,
                            std::string_view request_id = "");

}  // namespace lockstep
