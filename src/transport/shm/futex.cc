#include "transport/shm/futex.h"

#include <ctime>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lockstep {
namespace {

timespec to_timespec(std::chrono::microseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000),
          static_cast<long>(time.count() % 1'000'000 * 1000)};
}

}  // namespace

#ifdef __linux__

// Not FUTEX_PRIVATE: two processes map the word's memory.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::microseconds at_most) {
  const timespec time = to_timespec(at_most);
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, value, &time, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

#else

// Short naps where there are no futexes: a wake-up is at most this late.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::microseconds at_most) {
  constexpr std::chrono::microseconds kNap{50};
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (word.load(std::memory_order_seq_cst) == value && std::chrono::steady_clock::now() < end) {
    const timespec time = to_timespec(kNap < at_most ? kNap : at_most);
    ::nanosleep(&time, nullptr);
  }
}

void futex_wake(std::atomic<uint32_t>&) {}

#endif

}  // namespace lockstep
