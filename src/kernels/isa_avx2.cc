// The kernels for x86-64 processors with AVX2, FMA and F16C.
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace lockstep {
namespace {

// The most sums and tokens of one register block; the tiles of a quantised matrix processed
// together with one token and with several; the sums of the shapes that have kernels of their own
// for common formats. Sanitizers need minutes to compile all shapes; any shape gives the same bits.
#if defined(LOCKSTEP_FEW_SHAPES)
constexpr int kSumsMax = 2;
constexpr int kTokensMax = 2;
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;
constexpr int kCommonSums = 2;
#else
constexpr int kSumsMax = 6;
constexpr int kTokensMax = 6;
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;
constexpr int kCommonSums = 6;
#endif

#include "kernels/simd_scalar.inl"

#include "kernels/simd_avx2.inl"

#include "kernels/bytes_avx2.inl"

#include "kernels/generic/table.inl"

}  // namespace

extern const KernelTable kAvx2Kernels;
const KernelTable kAvx2Kernels = kernel_table("avx2");

}  // namespace lockstep
#endif
