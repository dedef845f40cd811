// Two values that every rank has a part of and that an exchange gathers: latents of the query and
// of keys and values, or the squares of their heads.
#pragma once

#include <cstddef>

#include "model/load/cut.h"

namespace lockstep {

// A rank's parts, and their places in the exchange buffer, rank after rank: (tokens, its part of
// the first), then (tokens, its part of the second). Offsets in floats.
struct GatheredPair {
  Range first;
  Range second;
  size_t first_at = 0;
  size_t second_at = 0;
  size_t end = 0;
};

// The parts of lower ranks lie before this one's in both.
inline GatheredPair gathered_pair(Range first, Range second, int tokens) {
  const auto floats = [&](int width) {
    return static_cast<size_t>(width) * static_cast<size_t>(tokens);
  };
  const size_t begin = floats(first.begin + second.begin);
  const size_t second_at = begin + floats(first.size());
  return {first, second, begin, second_at, second_at + floats(second.size())};
}

}  // namespace lockstep
