// Errors as the APIs tell them, OpenAI's where nothing else is said: {"error": {"message", "type",
// "param", "code"}} and an HTTP status. The one place where an ErrorCode becomes a status. Used by
// every route.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/result.h"
#include "net/http_server.h"

namespace lockstep {

struct ApiError {
  int status = 400;
  std::string message;     // a sentence, without a trailing full stop
  std::string param = {};  // the request's field, empty: null
  std::string code = {};   // empty: null
  int retry_after_s = 1;   // of 429 and 503
};

// By whose API a client expects to be told.
enum class ErrorStyle : uint8_t {
  kOpenAi,
  kOllama,     // {"error": "a sentence"}
  kAnthropic,  // {"type": "error", "error": {"type", "message"}, "request_id"}
};
// Of a request to this path, whether there is such a route or not.
ErrorStyle error_style_of(std::string_view path);
// The same, but clients of Anthropic's API are known by a header wherever they ask for a route that
// is not Ollama's.
ErrorStyle error_style_of(const HttpRequest& request);

// A value or an ApiError; works with TRY.
template <class T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  ApiResult(ApiError error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  ApiError& error() { return std::get<1>(state_); }
  const ApiError& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, ApiError> state_;
};

ApiError to_api_error(const Error& error);
ApiError bad_field(std::string param, std::string message);
ApiError unsupported_field(std::string param, std::string message);

// `request_id` is told where the API does so, unless it is empty.
std::string error_json(const ApiError& error, ErrorStyle style = ErrorStyle::kOpenAi,
                       std::string_view request_id = "");
// 429 and 503 carry Retry-After, 401 which keys are meant. To Anthropic's clients 503 is told by
// their own status, 529.
HttpResponse error_response(const ApiError& error, ErrorStyle style = ErrorStyle::kOpenAi,
                            std::string_view request_id = "");

}  // namespace lockstep
