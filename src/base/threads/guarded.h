// guarded(): runs one job of a thread of the node, so that an exception (above all bad_alloc) costs
// that job and not the program. Our code throws nothing; the standard library does. For the bodies
// of threads and of their loops. Any thread.
#pragma once

#include <functional>
#include <type_traits>

#include "base/result.h"

namespace lockstep {

// The current exception as an Error: kExhausted for memory. Only inside a catch block.
Error caught_error() noexcept;

// Returns the result of `call`, a Status or a Result; Ok if it returns nothing.
template <class Call>
auto guarded(const Call& call) {
  using Returned = std::invoke_result_t<const Call&>;
  if constexpr (std::is_void_v<Returned>) {
    try {
      call();
      return Status(Ok{});
    } catch (...) {
      return Status(caught_error());
    }
  } else {
    try {
      return Returned(call());
    } catch (...) {
      return Returned(caught_error());
    }
  }
}

}  // namespace lockstep
