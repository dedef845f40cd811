// What a request may say about choosing tokens. Plain data, shared by engine, node and server.
#pragma once

#include <cstdint>

namespace lockstep {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: greedy
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;        // 1: all
  uint64_t seed = 0;
};

}  // namespace lockstep
