// Makes a table of NEON kernels. Included by isa_neon*.cc in an anonymous namespace; bytes_neon.inl
// detects from the flags whether there are dot products and products of matrices of bytes.

// The most sums and tokens of one register block. Few shapes compile in less time; any shape gives
// the same bits.
#if defined(LOCKSTEP_FEW_SHAPES)
constexpr int kSumsMax = 2;
constexpr int kTokensMax = 2;
#else
constexpr int kSumsMax = 6;
constexpr int kTokensMax = 6;
#endif
// Tiles of a quantised matrix processed together with one token and with several.
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;
// The sums of the shapes that have kernels of their own for common formats; without them, the older
// instruction sets compile in less time.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int kCommonSums = kSumsMax;
#else
constexpr int kCommonSums = 0;
#endif

#include "kernels/simd_scalar.inl"

#include "kernels/simd_neon.inl"

#include "kernels/bytes_neon.inl"

#include "kernels/generic/table.inl"
