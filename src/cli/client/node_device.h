// The device on which ranks of this machine compute, as `lockstep serve` is told by --device. A GPU
// is opened and measured by a process of its own, since a driver that crashes must not end the
// node.
#pragma once

#include <string>

#include "base/result.h"
#include "planner/facts/device_facts.h"

namespace lockstep {

// `kinds` as --device has them. A list is for ranks that this machine shares models with itself,
// `has_own_groups`; ranks of the cluster then compute on the processor. Blocks, for a GPU a second
// or more, and logs what has been chosen.
Result<DeviceFacts> node_device(const std::string& kinds, bool has_own_groups);

}  // namespace lockstep
