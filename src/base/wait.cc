#include "base/wait.h"

#include <sched.h>

#include <string>

namespace lockstep {
namespace {

constexpr int kRoundsBeforeYield = 2000;  // some 50 us of polling, longer than an exchange takes

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Wait::Wait(std::chrono::milliseconds timeout, const std::atomic<bool>* cancelled)
    : timeout_(timeout), cancelled_(cancelled), last_(Clock::now()), deadline_(last_ + timeout) {}

Status Wait::pause(std::string_view what) {
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "the wait for " + std::string(what) + " was cancelled"};
  }
  const Clock::time_point now = Clock::now();
  if (now - last_ > kStall) deadline_ += now - last_;
  last_ = now;
  if (now > deadline_) {
    return Error{ErrorCode::kTimeout, "no " + std::string(what) + " within " +
                                          std::to_string(timeout_.count()) + " ms"};
  }
  if (++rounds_ < kRoundsBeforeYield) {
    relax();
  } else {
    sched_yield();
  }
  return Ok{};
}

}  // namespace lockstep
