// StableHash: a 64-bit hash of texts and numbers, the same on every machine and in every version,
// so that several routers agree. FNV-1a with a final mix (MurmurHash3's fmix64); not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace lockstep {

class StableHash {
 public:
  // Includes the length, so that ("ab", "c") and ("a", "bc") differ.
  StableHash& add(std::string_view text) {
    hash_.add(text);
    return add(static_cast<uint64_t>(text.size()));
  }
  StableHash& add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      hash_.add(uint64_t{static_cast<unsigned char>(number >> shift)});
    return *this;
  }
  uint64_t value() const {
    uint64_t mixed = hash_.value();
    mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdULL;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return mixed ^ (mixed >> 33);
  }

 private:
  Fnv hash_;
};

}  // namespace lockstep
