// Rotary position embedding: how fast each pair of a head turns. Computed in double with our own
// functions, so that every machine gets the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config/config.h"

namespace lockstep {

inline size_t rope_pairs(const ModelConfig& config) {
  return static_cast<size_t>(config.rotary_dims / 2);
}

// Radians per position for each of these pairs, rope scaling included.
std::vector<double> rope_frequencies(const ModelConfig& config);
// The same for the layers that have angles of their own (LayerTraits::has_other_rope); empty if
// none has. A pair that does not turn has 0.
std::vector<double> other_rope_frequencies(const ModelConfig& config);
// Appends the cosines and then the sines of position * frequency, both times `factor`: computed in
// double and rounded once.
void append_rope_row(std::span<const double> frequencies, int32_t position, float factor,
                     std::vector<float>& table);
// The factor by which the query at a position is multiplied.
float query_factor(const QueryScaling& scaling, int32_t position);

}  // namespace lockstep
