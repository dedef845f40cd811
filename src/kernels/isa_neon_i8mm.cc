// The kernels for AArch64 processors whose NEON has dot products (FEAT_DotProd) and products of
// small matrices of bytes (FEAT_I8MM).
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace lockstep {
namespace {

#include "kernels/table_neon.inl"

}  // namespace

extern const KernelTable kNeonI8mmKernels;
const KernelTable kNeonI8mmKernels = kernel_table("neon_i8mm");

}  // namespace lockstep
#endif
