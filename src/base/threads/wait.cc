#include "base/threads/wait.h"

#include <sched.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <string>
#include <thread>

namespace lockstep {
namespace {

// Longer than an exchange takes when all ranks are ready. With more ranks than processors, the rank
// we wait for may need this processor, so a longer time would slow down every exchange.
constexpr std::chrono::microseconds kBeforeYield{10};
constexpr int kRoundsPerClock = 8;  // while polling; reading the clock costs as much as a poll

// A yield this long gave another program a turn of the scheduler (1 to 4 ms), and so would every
// later yield, whereas a thread that sleeps runs again at once: so after such a yield it sleeps for
// a while instead. During a build, two ranks become 2 to 5 times as fast.
constexpr std::chrono::milliseconds kShared{1};
constexpr std::chrono::milliseconds kSharedFor{50};
constexpr std::chrono::microseconds kNap{20};

std::atomic<bool> may_nap{false};
thread_local Wait::Clock::time_point naps_until;

void nap() {
#if defined(__linux__)  // by default a sleep may take 50 us longer
  static thread_local const int slack = ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  static_cast<void>(slack);
#endif
  std::this_thread::sleep_for(kNap);
}

}  // namespace

void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void allow_naps(bool may) {
  may_nap.store(may, std::memory_order_relaxed);
}

void yield_processor() {
  if (!may_nap.load(std::memory_order_relaxed)) {
    ::sched_yield();
    return;
  }
  const Wait::Clock::time_point before = Wait::Clock::now();
  if (before < naps_until) return nap();
  ::sched_yield();
  const Wait::Clock::time_point after = Wait::Clock::now();
  if (after - before > kShared) naps_until = after + kSharedFor;
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
