// Random numbers that are the same on every machine (SplitMix64; the distributions of the standard
// library differ between implementations).
#pragma once

#include <cstdint>

namespace lockstep {

class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x1234567u) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // From `low` to `high`, inclusive.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) < probability * 9007199254740992.0;
  }

 private:
  uint64_t state_;
};

}  // namespace lockstep
