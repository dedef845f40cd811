// Errors as the OpenAI API tells them: {"error": {"message", "type", "param", "code"}} and an HTTP
// status. The one place where an ErrorCode becomes a status. Used by every route.
#pragma once

#include <string>
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
};

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

std::string error_json(const ApiError& error);
// 429 and 503 carry Retry-After.
HttpResponse error_response(const ApiError& error);

}  // namespace lockstep
