// A machine as the planner sees it: its capacity and speed, measured or from a profile. Plain
// values; measured figures replace the profile's.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct Machine {
  std::string name;
  uint64_t memory_bytes = 0;       // available to ranks
  double read_bytes_per_us = 0;    // of checkpoint bytes, reached by the kernels in decoding
  double kernel_us = 0;            // time of an operation besides reading and arithmetic
  double exchange_us = 0;          // of an exchange or a hop, besides the link's time
  double operations_per_us = 0;    // multiplications and additions for a prompt; 0: not known
  double idle_w = 0, load_w = 0;   // load_w 0: not known
  double price_usd = 0;            // 0: not known
  bool has_estimates = false;      // some figure is neither published nor measured
  bool is_other_software = false;  // speeds that published software for GPUs reaches
  std::string measured_on{};       // the device on which lockstep measured them; empty: none

  bool operator==(const Machine&) const = default;
};

}  // namespace lockstep
