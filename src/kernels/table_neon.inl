// What makes a table of kernels for NEON. Included by isa_neon.cc and isa_neon_dotprod.cc, in an
// anonymous namespace; bytes_neon.inl sees by the flags whether there are dot products of bytes.

// Sums of one register block and its most tokens.
constexpr int kSumsMax = 6;
constexpr int kTokensMax = 6;
// Tiles of a quantised matrix that one token and that several meet together.
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;

#include "kernels/simd_scalar.inl"

#include "kernels/simd_neon.inl"

#include "kernels/bytes_neon.inl"

#include "kernels/generic/table.inl"
