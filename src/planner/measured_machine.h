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

// How much memory is read to measure it, at most `bytes_max`: an eighth of what is available, so
// that a small machine is not filled by it; 0 where that is too little to say anything.
uint64_t read_probe_bytes(std::optional<uint64_t> available_bytes, uint64_t bytes_max);
// Takes that memory for a second or less. Its reading stays unknown without any. kExhausted if the
// memory is gone meanwhile.
Result<MeasuredSpeed> measure_this_machine(uint64_t bytes_max);

// What is not known of `speed` is taken from a common desktop; its operations stay unknown.
Machine measured_machine(const std::string& name, uint64_t memory_bytes,
                         const MeasuredSpeed& speed);

// What models may use of a machine that has so much available. The rest is for what else runs there
// and for what no plan counts: an eighth and at least 512 MiB, or a quarter of a small machine.
uint64_t budget_of(uint64_t available_bytes);
// Of this machine, or of the container it is; nothing where the system does not say.
std::optional<uint64_t> default_budget_bytes();

}  // namespace lockstep
