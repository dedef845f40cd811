// The kernels for AArch64 processors whose NEON has dot products of bytes (FEAT_DotProd).
// Compiled with flags of its own, so that it includes nothing but intrinsics and our own lines in
// an anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace lockstep {
namespace {

// Sums of one register block and its most tokens.
constexpr int kSumsMax = 6;
constexpr int kTokensMax = 6;
// Tiles of a quantised matrix that one token meets together.
constexpr int kBlockTilesMax = 1;

#include "kernels/simd_scalar.inl"

#include "kernels/simd_neon.inl"

#include "kernels/bytes_neon.inl"

#include "kernels/generic/table.inl"

}  // namespace

extern const KernelTable kNeonDotprodKernels;
const KernelTable kNeonDotprodKernels = kernel_table("neon_dotprod");

}  // namespace lockstep
#endif
