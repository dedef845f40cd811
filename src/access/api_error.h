// An API error: an HTTP status, a sentence and a code. Used by the node's server, whose APIs each
// have their own format for it, and by the router. Values.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/result.h"

namespace lockstep {

struct ApiError {
  int status = 400;
  std::string message;     // a sentence, without a trailing full stop
  std::string param = {};  // the request's field, empty: null
  std::string code = {};   // empty: null
  int retry_after_s = 1;   // of 429 and 503
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

}  // namespace lockstep
