#include "cli/flags/interrupt.h"

namespace lockstep {
namespace {

// A signal handler can do no more than set this; the waiting thread checks it.
volatile sig_atomic_t interrupted = 0;
int guards = 0;

}  // namespace

// A guard within another keeps what came before it: a Ctrl-C right after a question is for its
// answer.
InterruptGuard::InterruptGuard() {
  if (guards++ == 0) interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, &previous_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_, nullptr);
  --guards;
}

void InterruptGuard::forget() {
  interrupted = 0;
}

bool InterruptGuard::is_interrupted() {
  return interrupted != 0;
}

}  // namespace lockstep
