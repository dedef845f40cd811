// Fnv: a 64-bit hash of words and texts, the same on every machine and in every version (FNV-1a,
// RFC 9923). mix64: the finaliser of SplitMix64 (https://prng.di.unimi.it/splitmix64.c), after
// which near inputs have distant values. For comparing and spreading; not for keys that strangers
// choose.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

class Fnv {
 public:
  Fnv& add(uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3u;
    return *this;
  }
  Fnv& add(std::string_view text) {
    for (const char c : text) add(uint64_t{static_cast<unsigned char>(c)});
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

constexpr uint64_t mix64(uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

// SplitMix64: the next number of the sequence that `state` stands for.
constexpr uint64_t next_random(uint64_t& state) {
  return mix64(state += 0x9e3779b97f4a7c15u);
}

}  // namespace lockstep
