// LOCKSTEP_CHECK: a condition that only our own mistake can break. Always on; prints the location
// and aborts.
#pragma once

namespace lockstep {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

#define LOCKSTEP_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::lockstep::check_failed(#condition, __FILE__, __LINE__))

}  // namespace lockstep
