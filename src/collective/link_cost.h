// What a link costs, in whole numbers, so that ranks can tell each other exactly.
#pragma once

#include <cstdint>

namespace lockstep {

struct LinkCost {
  uint32_t latency_ns = 1000;    // of a short frame, one way
  uint32_t bytes_per_us = 5000;  // of long ones
};

}  // namespace lockstep
