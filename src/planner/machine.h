// A machine as the planner sees it: what it can hold and how fast it works, measured or from a
// profile. Plain values; the figures of a machine that was measured replace those of its profile.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct Machine {
  std::string name;
  uint64_t memory_bytes = 0;      // that ranks may take
  double read_bytes_per_us = 0;   // of checkpoint bytes, that the kernels reach in decoding
  double kernel_us = 0;           // what an operation takes besides reading and arithmetic
  double exchange_us = 0;         // of an exchange or a hop, besides what the link takes
  double operations_per_us = 0;   // multiplications and additions of a prompt; 0: not known
  double idle_w = 0, load_w = 0;  // load_w 0: not known
  double price_usd = 0;           // 0: not known
  bool has_estimates = false;     // some figure is no published or measured fact

  bool operator==(const Machine&) const = default;
};

}  // namespace lockstep
