// The kernels for x86-64 processors with AVX-512 F, BW, VL, DQ and VNNI.
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// g++ 12 warns about its own _mm512_undefined_ps() (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
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
constexpr int kSumsMax = 16;
constexpr int kTokensMax = 8;
constexpr int kBlockTilesOfOne = 4;
constexpr int kBlockTilesOfMany = 4;
constexpr int kCommonSums = 16;
#endif

#include "kernels/simd_scalar.inl"

#include "kernels/simd_avx512.inl"

#include "kernels/bytes_avx512.inl"

#include "kernels/generic/table.inl"

}  // namespace

extern const KernelTable kAvx512Kernels;
const KernelTable kAvx512Kernels = kernel_table("avx512");

}  // namespace lockstep
#endif
