#include "base/wait.h"

#include <sched.h>

#include <string>

namespace lockstep {
namespace {

constexpr int kRoundsBeforeYield = 2000;  // some 50 us of polling, longer than an exchange takes
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
    last_ = Clock::now();
    deadline_ = last_ + timeout_;
  }
  if (rounds_ < kRoundsBeforeYield) {
    if (++rounds_ % kRoundsPerClock == 0) TRY(look_at_clock(what));
    relax_processor();
  } else {
    TRY(look_at_clock(what));
    yield_processor();
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
  if (now > deadline_) {
    return Error{ErrorCode::kTimeout,
                 "no " + std::string(what) + " within " + std::to_string(timeout_.count()) + " ms"};
  }
  return Ok{};
}

}  // namespace lockstep
