// How often a model's draft layer has guessed, and how often it was right. For display.
#pragma once

#include <cstdint>

namespace lockstep {

struct DraftCounts {
  uint64_t steps = 0;  // with guesses
  uint64_t guesses = 0;
  uint64_t right = 0;

  void add(const DraftCounts& other) {
    steps += other.steps;
    guesses += other.guesses;
    right += other.right;
  }
  bool operator==(const DraftCounts&) const = default;
};

}  // namespace lockstep
