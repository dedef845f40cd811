#include "cli/flags/interrupt.h"

namespace lockstep {
namespace {

// A signal handler can do no more than set this; the waiting thread checks it.
volatile sig_atomic_t interrupted = 0;

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, &previous_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_, nullptr);
}

bool InterruptGuard::is_interrupted() {
  return interrupted != 0;
}

}  // namespace lockstep
