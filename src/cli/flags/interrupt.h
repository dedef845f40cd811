// Ctrl-C while a command waits for an answer: it is noted instead of ending the program. One at a
// time, on the main thread.
#pragma once

#include <signal.h>

namespace lockstep {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Since this guard was made. Any thread.
  static bool is_interrupted();

 private:
  struct sigaction previous_ {};
};

}  // namespace lockstep
