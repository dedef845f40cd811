// Ctrl-C while a command waits for an answer: it is noted instead of ending the program. Guards
// nest; they are made on the main thread.
#pragma once

#include <signal.h>

namespace lockstep {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Since the outermost guard was made, or since forget(). Any thread.
  static bool is_interrupted();
  // The task that was interrupted has ended.
  static void forget();

 private:
  struct sigaction previous_ {};
};

}  // namespace lockstep
