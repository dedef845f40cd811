// The block formats of ggml that lockstep computes with: a block's columns and bytes, and the
// places of its parts. All numbers are little-endian, f16 is IEEE half precision, e is the column
// within its block. Format: ggml-common.h and ggml-quants.c of https://github.com/ggml-org/ggml
//
//   Q4_0    f16 d, 16 bytes: e < 16 in the low nibble of byte e, else in the high one of e - 16
//   Q4_1    f16 d, f16 m, nibbles like Q4_0
//   Q5_0    f16 d, uint32 with bit 4 of column e as its bit e, nibbles like Q4_0
//   Q5_1    f16 d, f16 m, uint32, nibbles like Q5_0
//   Q8_0    f16 d, 32 int8
//   Q2_K    16 bytes (low nibble s, high nibble t, by 16 columns), 64 bytes of codes, f16 d, f16 m
//   Q3_K    32 bytes of bit 2, 64 bytes of codes, 12 bytes of 16 six-bit s, f16 d
//   Q4_K    f16 d, f16 m, 12 bytes of eight six-bit s and t, 128 bytes of codes
//   Q5_K    f16 d, f16 m, 12 bytes like Q4_K, 32 bytes of bit 4, 128 bytes of codes
//   Q6_K    128 bytes of bits 0-3, 64 bytes of bits 4-5, 16 int8 s, f16 d
//   IQ4_NL  f16 d, nibbles like Q4_0, which index a table
//   IQ4_XS  f16 d, uint16 with bits 4-5 and 4 bytes with bits 0-3 of eight s, nibbles like Q4_0 for
//           each 32 columns
//   MXFP4   E8M0 byte, nibbles (E2M1) like Q4_0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

// With the numbers of the format.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct GgmlBlock {
  GgmlType type;
  std::string_view name;
  int columns;
  int bytes;
  int scale_columns;  // columns that share a scale; 0 for plain elements
  int bits;           // of a code; 0 for plain elements
};

inline constexpr GgmlBlock kGgmlBlocks[] = {
    {GgmlType::kF32, "F32", 1, 4, 0, 0},
    {GgmlType::kF16, "F16", 1, 2, 0, 0},
    {GgmlType::kBF16, "BF16", 1, 2, 0, 0},
    {GgmlType::kQ4_0, "Q4_0", 32, 18, 32, 4},
    {GgmlType::kQ4_1, "Q4_1", 32, 20, 32, 4},
    {GgmlType::kQ5_0, "Q5_0", 32, 22, 32, 5},
    {GgmlType::kQ5_1, "Q5_1", 32, 24, 32, 5},
    {GgmlType::kQ8_0, "Q8_0", 32, 34, 32, 8},
    {GgmlType::kQ2_K, "Q2_K", 256, 84, 16, 2},
    {GgmlType::kQ3_K, "Q3_K", 256, 110, 16, 3},
    {GgmlType::kQ4_K, "Q4_K", 256, 144, 32, 4},
    {GgmlType::kQ5_K, "Q5_K", 256, 176, 32, 5},
    {GgmlType::kQ6_K, "Q6_K", 256, 210, 16, 6},
    {GgmlType::kIQ4_NL, "IQ4_NL", 32, 18, 32, 4},
    {GgmlType::kIQ4_XS, "IQ4_XS", 256, 136, 32, 4},
    {GgmlType::kMXFP4, "MXFP4", 32, 17, 32, 4},
};

// Null for a type outside the table.
constexpr const GgmlBlock* find_ggml_block(uint32_t type) {
  for (const GgmlBlock& block : kGgmlBlocks) {
    if (static_cast<uint32_t>(block.type) == type) return &block;
  }
  return nullptr;
}

// The six-bit numbers of Q4_K and Q5_K: s and t of each 32 columns.
struct SixBitPair {
  uint8_t scale;
  uint8_t minimum;
};
inline SixBitPair six_bit_pair(const std::byte* packed, int index) {
  const auto at = [packed](int i) { return static_cast<unsigned>(packed[i]); };
  if (index < 4) {
    return {static_cast<uint8_t>(at(index) & 63), static_cast<uint8_t>(at(index + 4) & 63)};
  }
  return {static_cast<uint8_t>((at(index + 4) & 15) | at(index - 4) >> 6 << 4),
          static_cast<uint8_t>(at(index + 4) >> 4 | at(index) >> 6 << 4)};
}

// The scale of 16 columns of Q3_K.
inline int8_t q3_scale(const std::byte* packed, int index) {
  const auto at = [packed](int i) { return static_cast<unsigned>(packed[i]); };
  const unsigned low = index < 8 ? at(index) & 15 : at(index - 8) >> 4;
  const unsigned high = at(8 + index % 4) >> (2 * (index / 4)) & 3;
  return static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
}

// The scale of 32 columns of IQ4_XS; `block` is the beginning of the block.
inline int8_t iq4_xs_scale(const std::byte* block, int index) {
  const auto at = [block](int i) { return static_cast<unsigned>(block[i]); };
  const unsigned low = at(4 + index / 2) >> (4 * (index % 2)) & 15;
  const unsigned high = (at(2) | at(3) << 8) >> (2 * index) & 3;
  return static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
}

}  // namespace lockstep
