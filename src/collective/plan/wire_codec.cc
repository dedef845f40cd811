#include "collective/plan/wire_codec.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

// For a block: values are code * 2^exponent. The minimum keeps codes of tiny values exact.
constexpr int kExponentMin = -126;
constexpr int kNotFinite = 127;  // in place of an exponent, which is at most 121

uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);  // stays a NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

constexpr uint32_t kInfinityBits = 0x7f80'0000;
// Adding it to a small number rounds that to a whole one, half to even.
constexpr float kRoundShift = 0x1.8p23f;

// 2^exponent, for a normal number.
float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

int block_exponent(std::span<const float> block) {
  uint32_t largest_bits = 0;  // magnitudes sort like their bits, infinity and NaN last
  for (const float value : block) {
    largest_bits = std::max(largest_bits, std::bit_cast<uint32_t>(value) & 0x7fff'ffff);
  }
  if (largest_bits >= kInfinityBits) return kNotFinite;
  const int exponent = std::max(static_cast<int>(largest_bits >> 23) - 127 - 6, kExponentMin);
  const float code = std::bit_cast<float>(largest_bits) * power_of_two(-exponent);  // below 128
  return code > 127.0f ? exponent + 1 : exponent;
}

size_t encode_block(std::span<const float> block, std::byte* to) {
  const int exponent = block_exponent(block);
  to[0] = static_cast<std::byte>(exponent);
  if (exponent == kNotFinite) {
    std::fill_n(to + 1, block.size(), std::byte{0});
    return 1 + block.size();
  }
  const float factor = power_of_two(-exponent);
  for (size_t i = 0; i < block.size(); ++i) {
    const float code = block[i] * factor + kRoundShift - kRoundShift;
    to[1 + i] = static_cast<std::byte>(static_cast<int8_t>(static_cast<int>(code)));
  }
  return 1 + block.size();
}

size_t decode_block(const std::byte* from, std::span<float> block) {
  const auto exponent = static_cast<int8_t>(from[0]);
  const bool is_number = exponent >= kExponentMin && exponent != kNotFinite;
  const float scale = is_number ? power_of_two(exponent) : std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<float>(static_cast<int8_t>(from[1 + i])) * scale;
  }
  return 1 + block.size();
}

void round_q8(std::span<float> values) {
  std::byte coded[1 + kWireBlock];
  for (size_t begin = 0; begin < values.size(); begin += kWireBlock) {
    const auto block = values.subspan(begin, std::min(kWireBlock, values.size() - begin));
    encode_block(block, coded);
    decode_block(coded, block);
  }
}

}  // namespace

void round_to_wire(Wire wire, std::span<float> values) {
  if (wire == Wire::kBf16) {
    for (float& value : values) value = bf16_value(bf16_bits(value));
  } else if (wire == Wire::kQ8) {
    round_q8(values);
  }
}

void encode_wire(Wire wire, std::span<const float> values, std::byte* to) {
  if (wire == Wire::kF32) {
    std::memcpy(to, values.data(), values.size_bytes());
  } else if (wire == Wire::kBf16) {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t bits = bf16_bits(values[i]);
      std::memcpy(to + 2 * i, &bits, sizeof(bits));
    }
  } else {
    for (size_t begin = 0; begin < values.size(); begin += kWireBlock) {
      to += encode_block(values.subspan(begin, std::min(kWireBlock, values.size() - begin)), to);
    }
  }
}

void decode_wire(Wire wire, const std::byte* from, std::span<float> values) {
  if (wire == Wire::kF32) {
    std::memcpy(values.data(), from, values.size_bytes());
  } else if (wire == Wire::kBf16) {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, from + 2 * i, sizeof(bits));
      values[i] = bf16_value(bits);
    }
  } else {
    for (size_t begin = 0; begin < values.size(); begin += kWireBlock) {
      from +=
          decode_block(from, values.subspan(begin, std::min(kWireBlock, values.size() - begin)));
    }
  }
}

}  // namespace lockstep
