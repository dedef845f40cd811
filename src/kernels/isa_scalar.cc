// The kernels for any processor, in plain C++.
// Compiled with flags of its own, so that it includes nothing but intrinsics and our own lines in
// an anonymous namespace (kernels.h).
#include "kernels/kernels.h"

namespace lockstep {
namespace {

// Sums of one register block and its most tokens. More would gain little without registers of
// sixteen lanes, and takes minutes to compile.
constexpr int kSumsMax = 1;
constexpr int kTokensMax = 1;
// Tiles of a quantised matrix that one token and that several meet together.
constexpr int kBlockTilesOfOne = 1;
constexpr int kBlockTilesOfMany = 1;

#include "kernels/simd_scalar.inl"

using F32x16 = Lanes<kLanes>;

#include "kernels/bytes_scalar.inl"

#include "kernels/generic/table.inl"

}  // namespace

extern const KernelTable kScalarKernels;
const KernelTable kScalarKernels = kernel_table("scalar");

}  // namespace lockstep
