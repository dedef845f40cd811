// comes_true(): waits for something that causes no event which a test could wait for, such as a
// status that another thread or process changes. For tests; any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace lockstep {

// Asks for the condition every millisecond; false once `patience` is over, which is for a busy
// machine.
template <class Condition>
bool comes_true(Condition&& condition,
                std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    never.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace lockstep
