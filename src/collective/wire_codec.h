// Vectors in the form in which they travel (collective/wire.h). Every format is exact on what it
// has rounded itself: encode and decode of round_to_wire's values change nothing, so a sum that all
// ranks round after each addition has the same bits on all of them, whichever way it went.
#pragma once

#include <cstddef>
#include <span>

#include "collective/wire.h"

namespace lockstep {

inline constexpr size_t kWireBlock = 32;  // values of kQ8 with one scale

constexpr size_t wire_bytes(Wire wire, size_t count) {
  if (wire == Wire::kBf16) return 2 * count;
  if (wire == Wire::kQ8) return count + (count + kWireBlock - 1) / kWireBlock;
  return 4 * count;
}

// kBf16: round to nearest even. kQ8: a block is whole numbers from -127 to 127 times the smallest
// power of two, from 2^-126, that has room for its largest value; a block with infinity or NaN
// becomes NaN.
void round_to_wire(Wire wire, std::span<float> values);
void encode_wire(Wire wire, std::span<const float> values, std::byte* to);
void decode_wire(Wire wire, const std::byte* from, std::span<float> values);

}  // namespace lockstep
