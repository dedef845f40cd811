#include "doctor/checks/clock_checks.h"

#if defined(__linux__) || defined(__APPLE__)
#include <sys/timex.h>
#endif

namespace lockstep {

ClockFacts collect_clock() {
#ifdef __linux__
  timex state{};  // no modes: only queries
  const int said = ::adjtimex(&state);
  if (said < 0) return {};
  return {.is_synchronised = said != TIME_ERROR && (state.status & STA_UNSYNC) == 0};
#elif defined(__APPLE__)
  // macOS's own service may correct the clock without saying so here: only a yes is an answer.
  timex state{};
  const int said = ::ntp_adjtime(&state);
  if (said < 0 || said == TIME_ERROR || (state.status & STA_UNSYNC) != 0) return {};
  return {.is_synchronised = true};
#else
  return {};
#endif
}

Findings judge_clock(const ClockFacts& facts) {
  Findings findings;
  if (!facts.is_synchronised) return findings;
  if (*facts.is_synchronised) {
    add_ok(findings, "clock", "the clock is synchronised");
  } else {
    add_note(findings, "clock",
             "the clock is not synchronised with others (in a virtual machine the host may do it)",
             "sudo timedatectl set-ntp true");
  }
  return findings;
}

}  // namespace lockstep
