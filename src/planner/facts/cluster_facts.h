// The machines and links that a plan is made for.
#pragma once

#include <vector>

#include "planner/facts/links.h"
#include "planner/facts/machine.h"

namespace lockstep {

// More are refused: planning must stay fast.
inline constexpr size_t kPlannedMachinesMax = 64;

struct ClusterFacts {
  std::vector<Machine> machines;  // with distinct names
  LinkTable links;
};

}  // namespace lockstep
