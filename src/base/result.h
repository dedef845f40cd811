// Result<T>: a value or an Error. Functions that can fail because of the outside world return it;
// programmer mistakes are LOCKSTEP_CHECKs (base/check.h), not Results. Nothing here throws.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace lockstep {

enum class ErrorCode {
  kInvalidArgument,  // the request is invalid
  kNotFound,         // a file, model or route does not exist
  kUnsupported,      // understood, but lockstep cannot do it
  kExhausted,        // a named limit was reached: memory, queue, context
  kTimeout,          // a deadline passed
  kCancelled,        // stopped on request
  kPeerLost,         // another rank or process is gone
  kCorrupt,          // bytes from outside violate their format
  kInternal,         // our own mistake, or the operating system's refusal
};

struct Error {
  ErrorCode code;
  std::string message;  // one sentence a user can act on, without a trailing full stop
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

// auto header = TRY(read_header(file)); returns the Error to our own caller. Do not use it after
// another element inside braces, Pair{TRY(first()), TRY(second())}: if the second returns, GCC 12
// and Clang before 19 never destroy the first.
#define TRY(expression)                                           \
  __extension__({                                                 \
    auto try_result_ = (expression);                              \
    if (!try_result_.ok()) return std::move(try_result_.error()); \
    std::move(try_result_.value());                               \
  })

}  // namespace lockstep
