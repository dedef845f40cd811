// The machines and links that a plan is made for.
#pragma once

#include <vector>

#include "planner/links.h"
#include "planner/machine.h"

namespace lockstep {

// More are refused: planning must stay quick.
inline constexpr size_t kPlannedMachinesMax = 64;

struct ClusterFacts {
  std::vector<Machine> machines;  // of different names
  LinkTable links;
};

}  // namespace lockstep
