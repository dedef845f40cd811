// The functions whose instructions callgrind counts, by name. They are in their own file so that no
// compiler clones them for a caller.
#include "growth/probe.h"

bool growth_measured(const lockstep::Reading& read) {
  const bool is_read = read();
  asm volatile("" ::: "memory");  // so that the call above is not a tail call
  return is_read;
}

int64_t cost_measured(const lockstep::CostProbe& probe, int64_t steps_max) {
  const int64_t steps = probe.run(steps_max);
  asm volatile("" ::: "memory");
  return steps;
}
