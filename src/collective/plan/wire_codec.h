// Vectors in wire format (collective/plan/wire.h). Every format is exact on values it has already
// rounded: encoding and decoding them changes nothing, so a sum that all ranks round after each
// addition has the same bits on every rank, whatever its route.
#pragma once

#include <cstddef>
#include <span>

#include "collective/plan/wire.h"

namespace lockstep {

inline constexpr size_t kWireBlock = 32;  // values of kQ8 with one scale

constexpr size_t wire_bytes(Wire wire, size_t count) {
  if (wire == Wire::kBf16) return 2 * count;
  if (wire == Wire::kQ8) return count + (count + kWireBlock - 1) / kWireBlock;
  return 4 * count;
}

// kBf16: round to nearest even. kQ8: a block is whole numbers from -127 to 127 times the smallest
// power of two, from 2^-126, that fits its largest value; a block with infinity or NaN becomes NaN.
void round_to_wire(Wire wire, std::span<float> values);
void encode_wire(Wire wire, std::span<const float> values, std::byte* to);
void decode_wire(Wire wire, const std::byte* from, std::span<float> values);

}  // namespace lockstep
