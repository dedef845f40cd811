// The clock: join tokens expire by it, and the later of two requests for a model wins.
#pragma once

#include <optional>

#include "doctor/facts/finding.h"

namespace lockstep {

struct ClockFacts {
  std::optional<bool> is_synchronised;  // nullopt: the system does not say
};

ClockFacts collect_clock();
Findings judge_clock(const ClockFacts& facts);

}  // namespace lockstep
