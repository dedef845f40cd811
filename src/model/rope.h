// Rotary position embedding: how fast each pair of a head turns. Computed in double with our own
// functions, so that every machine has the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace lockstep {

// Radians per position for pairs 0 .. rotary_dims / 2 - 1, rope scaling included.
std::vector<double> rope_frequencies(const ModelConfig& config);
// What the query at a position is multiplied by.
float query_factor(const QueryScaling& scaling, int32_t position);

}  // namespace lockstep
