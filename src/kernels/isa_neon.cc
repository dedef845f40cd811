// The kernels for AArch64, which always has NEON.
// Compiled with its own flags, so it includes nothing but intrinsics and our own code in an
// anonymous namespace (kernels.h).
#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace lockstep {
namespace {

#include "kernels/table_neon.inl"

}  // namespace

extern const KernelTable kNeonKernels;
const KernelTable kNeonKernels = kernel_table("neon");

}  // namespace lockstep
#endif
