// A machine without a description: what was measured on it or reported by it, and assumptions for
// the rest. Used by `lockstep plan` for this machine, and by the nodes of a cluster for each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "planner/facts/machine.h"

namespace lockstep {

// 0: not known.
struct MeasuredSpeed {
  int64_t read_bytes_s = 0;  // memory bandwidth
  int64_t operations_s = 0;  // multiplications and additions for a prompt; estimated from its cores
};

// How much memory to read to measure its speed, at most `bytes_max`: an eighth of what is
// available, so as not to fill a small machine; 0 if that is too little for a result.
uint64_t read_probe_bytes(std::optional<uint64_t> available_bytes, uint64_t bytes_max);
// Takes that memory for a second or less. Without any the read speed stays unknown. kExhausted if
// the memory is no longer available.
Result<MeasuredSpeed> measure_this_machine(uint64_t bytes_max);

// Unknown values of `speed` are those of a common desktop; operations stay unknown.
Machine measured_machine(const std::string& name, uint64_t memory_bytes,
                         const MeasuredSpeed& speed);

// Memory for models on a machine with this much available. The rest is for other programs and all
// that plans do not count: an eighth and at least 512 MiB, or a quarter of a small machine.
uint64_t budget_of(uint64_t available_bytes);
// For this machine, or the container it runs in; empty if the system does not tell.
std::optional<uint64_t> default_budget_bytes();

}  // namespace lockstep
