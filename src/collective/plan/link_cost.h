// The cost of a link, in whole numbers, so that ranks exchange exact values.
#pragma once

#include <cstdint>

namespace lockstep {

struct LinkCost {
  uint32_t latency_ns = 1000;    // of a short frame, one way: the minimum measured
  uint32_t bytes_per_us = 5000;  // for long frames
  // For display; plans use the minimum. 0: not measured.
  uint32_t p50_ns = 0;
  uint32_t p99_ns = 0;
};

}  // namespace lockstep
