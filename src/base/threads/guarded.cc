#include "base/threads/guarded.h"

#include <exception>
#include <new>

namespace lockstep {

// The sentence about memory is short enough not to allocate.
Error caught_error() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kExhausted, "out of memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal, error.what()};
  } catch (...) {
    return {ErrorCode::kInternal, "an exception"};
  }
}

}  // namespace lockstep
