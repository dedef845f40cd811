#include "base/wait.h"

#include <sched.h>

#include <string>

namespace lockstep {
namespace {

// Longer than an exchange takes when all ranks are there. With more ranks than processors the one
// that is waited for may need this processor, so more would slow every exchange down.
constexpr std::chrono::microseconds kBeforeYield{10};
constexpr int kRoundsPerClock = 8;  // while polling; a look at the clock costs as much as a poll

}  // namespace

void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void yield_processor() {
  sched_yield();
}

Wait::Wait(std::chrono::milliseconds timeout, const std::atomic<bool>* cancelled)
    : timeout_(timeout), cancelled_(cancelled) {}

Status Wait::pause(std::string_view what) {
  if (rounds_ == 0) {
    start_ = last_ = Clock::now();
    deadline_ = last_ + timeout_;
    is_yielding_ = false;
  }
  ++rounds_;
  if (is_yielding_ || rounds_ % kRoundsPerClock == 0) TRY(look_at_clock(what));
  if (is_yielding_) {
    yield_processor();
  } else {
    relax_processor();
  }
  return Ok{};
}

Status Wait::look_at_clock(std::string_view what) {
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "the wait for a " + std::string(what) + " was cancelled"};
  }
  const Clock::time_point now = Clock::now();
  if (now - last_ > kStall) deadline_ += now - last_;
  last_ = now;
  is_yielding_ = now - start_ > kBeforeYield;
  if (now > deadline_) {
    return Error{ErrorCode::kTimeout,
                 "no " + std::string(what) + " within " + std::to_string(timeout_.count()) + " ms"};
  }
  return Ok{};
}

}  // namespace lockstep
