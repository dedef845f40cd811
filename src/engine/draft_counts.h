// How often a model's draft layer has guessed, and how often it was right. For display.
#pragma once

#include <cstdint>

namespace lockstep {

struct DraftCounts {
  uint64_t steps = 0;  // with guesses
  uint64_t guesses = 0;
  uint64_t right = 0;
  uint64_t exchanges = 0;  // of all steps, between rank 0 and the other ranks of its stage

  void add(const DraftCounts& other) {
    steps += other.steps;
    guesses += other.guesses;
    right += other.right;
    exchanges += other.exchanges;
  }
  bool operator==(const DraftCounts&) const = default;
};

}  // namespace lockstep
