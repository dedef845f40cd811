// What a link costs, in whole numbers, so that ranks can tell each other exactly.
#pragma once

#include <cstdint>

namespace lockstep {

struct LinkCost {
  uint32_t latency_ns = 1000;    // of a short frame, one way: the least that was seen
  uint32_t bytes_per_us = 5000;  // of long ones
  // For people; plans are made by the least. 0: not measured.
  uint32_t p50_ns = 0;
  uint32_t p99_ns = 0;
};

}  // namespace lockstep
