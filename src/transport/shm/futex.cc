#include "transport/shm/futex.h"

#include <ctime>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <cerrno>

#if __has_include(<os/os_sync_wait_on_address.h>)
#include <os/os_sync_wait_on_address.h>
#else
// As Apple's SDK declares them since macOS 14.4; libSystem has them.
extern "C" int os_sync_wait_on_address_with_timeout(void* address, uint64_t value, size_t size,
                                                    uint32_t flags, uint32_t clock,
                                                    uint64_t timeout_ns);
extern "C" int os_sync_wake_by_address_any(void* address, size_t size, uint32_t flags);
#define OS_SYNC_WAIT_ON_ADDRESS_SHARED 1
#define OS_SYNC_WAKE_BY_ADDRESS_SHARED 1
#define OS_CLOCK_MACH_ABSOLUTE_TIME 32
#endif
#endif

namespace lockstep {
namespace {

timespec to_timespec(std::chrono::microseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000),
          static_cast<long>(time.count() % 1'000'000 * 1000)};
}

#ifndef __linux__
// Short naps where there are no futexes: a wake-up is at most this late.
void nap_until_changed(std::atomic<uint32_t>& word, uint32_t value,
                       std::chrono::microseconds at_most) {
  constexpr std::chrono::microseconds kNap{50};
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (word.load(std::memory_order_seq_cst) == value && std::chrono::steady_clock::now() < end) {
    const timespec time = to_timespec(kNap < at_most ? kNap : at_most);
    ::nanosleep(&time, nullptr);
  }
}
#endif

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

#elif defined(__APPLE__)

// SHARED: two processes map the word's memory. The timeout counts from now. A kernel that refuses
// the call (a value other than a timeout or a signal) has the word looked at instead.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::microseconds at_most) {
  if (at_most.count() <= 0) return;
  const int said = ::os_sync_wait_on_address_with_timeout(
      &word, value, sizeof(uint32_t), OS_SYNC_WAIT_ON_ADDRESS_SHARED, OS_CLOCK_MACH_ABSOLUTE_TIME,
      static_cast<uint64_t>(at_most.count()) * 1000);
  if (said < 0 && errno != ETIMEDOUT && errno != EINTR) nap_until_changed(word, value, at_most);
}

void futex_wake(std::atomic<uint32_t>& word) {
  (void)::os_sync_wake_by_address_any(&word, sizeof(uint32_t), OS_SYNC_WAKE_BY_ADDRESS_SHARED);
}

#else

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::microseconds at_most) {
  nap_until_changed(word, value, at_most);
}

void futex_wake(std::atomic<uint32_t>&) {}

#endif

}  // namespace lockstep
