// A machine that nobody has described: what is measured of it, or told by it, and what is assumed
// of the rest. Used by `lockstep plan` for this machine, and by the nodes of a cluster for each
// other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "planner/machine.h"

namespace lockstep {

// 0: not known.
struct MeasuredSpeed {
  int64_t read_bytes_s = 0;  // memory bandwidth
  int64_t operations_s = 0;  // multiplications and additions of a prompt; estimated by its cores
};

// Takes 1 GiB of memory for a second or less. kExhausted without the memory.
Result<MeasuredSpeed> measure_this_machine();

// What is not known of `speed` is taken from a common desktop; its operations stay unknown.
Machine measured_machine(const std::string& name, uint64_t memory_bytes,
                         const MeasuredSpeed& speed);

// What models may use of a machine that has so much available: the rest is for what else runs there
// and for what no plan counts.
uint64_t budget_of(uint64_t available_bytes);
// Of this machine, or of the container it is; nothing where the system does not say.
std::optional<uint64_t> default_budget_bytes();

}  // namespace lockstep
