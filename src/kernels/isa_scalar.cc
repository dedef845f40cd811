// The kernels for any processor, in plain C++.
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

namespace lockstep {
namespace {

// The most sums and tokens of one register block. More would gain little without registers of
// sixteen lanes, and takes minutes to compile.
constexpr int kSumsMax = 1;
constexpr int kTokensMax = 1;
// Tiles of a quantised matrix processed together with one token and with several.
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;
constexpr int kCommonSums = 0;  // no kernels of their own for common formats with several tokens

#include "kernels/simd_scalar.inl"

using F32x16 = Lanes<kLanes>;

#include "kernels/bytes_scalar.inl"

#include "kernels/generic/table.inl"

}  // namespace

extern const KernelTable kScalarKernels;
const KernelTable kScalarKernels = kernel_table("scalar");

}  // namespace lockstep
