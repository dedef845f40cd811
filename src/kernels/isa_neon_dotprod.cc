// The kernels for AArch64 processors whose NEON has dot products of bytes (FEAT_DotProd).
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace lockstep {
namespace {

#include "kernels/table_neon.inl"

}  // namespace

extern const KernelTable kNeonDotprodKernels;
const KernelTable kNeonDotprodKernels = kernel_table("neon_dotprod");

}  // namespace lockstep
#endif
