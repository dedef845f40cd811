#include "device/vulkan/kernel_code.h"

#include "base/check.h"

namespace lockstep::gpu {
namespace {

// Each header has one array: kActivate and, with float64, kActivate64; kMatmulDot and
// kMatmulEndedDot multiply bytes by integer dot products.
#include <spirv/kAbsorb.h>
#include <spirv/kAbsorb64.h>
#include <spirv/kActivate.h>
#include <spirv/kActivate64.h>
#include <spirv/kAttention.h>
#include <spirv/kAttention64.h>
#include <spirv/kAttentionChosen.h>
#include <spirv/kAttentionChosen64.h>
#include <spirv/kAttentionCompressed.h>
#include <spirv/kAttentionCompressed64.h>
#include <spirv/kAttentionMerge.h>
#include <spirv/kAttentionMerge64.h>
#include <spirv/kChoosePositions.h>
#include <spirv/kChoosePositions64.h>
#include <spirv/kCompress.h>
#include <spirv/kCompress64.h>
#include <spirv/kConvolve.h>
#include <spirv/kConvolve64.h>
#include <spirv/kDelta.h>
#include <spirv/kDelta64.h>
#include <spirv/kElementwise.h>
#include <spirv/kElementwise64.h>
#include <spirv/kEmbed.h>
#include <spirv/kEmbed64.h>
#include <spirv/kHeadSquares.h>
#include <spirv/kHeadSquares64.h>
#include <spirv/kHeads.h>
#include <spirv/kHeads64.h>
#include <spirv/kIndexScores.h>
#include <spirv/kIndexScores64.h>
#include <spirv/kLatent.h>
#include <spirv/kLatent64.h>
#include <spirv/kLayerNorm.h>
#include <spirv/kLayerNorm64.h>
#include <spirv/kMatchStreams.h>
#include <spirv/kMatchStreams64.h>
#include <spirv/kMatmul.h>
#include <spirv/kMatmul64.h>
#include <spirv/kMatmulDot.h>
#include <spirv/kMatmulDot64.h>
#include <spirv/kMatmulEnded.h>
#include <spirv/kMatmulEnded64.h>
#include <spirv/kMatmulEndedDot.h>
#include <spirv/kMatmulEndedDot64.h>
#include <spirv/kNorm.h>
#include <spirv/kNorm64.h>
#include <spirv/kNormHeads.h>
#include <spirv/kNormHeads64.h>
#include <spirv/kPoolKey.h>
#include <spirv/kPoolKey64.h>
#include <spirv/kPrepare.h>
#include <spirv/kPrepare64.h>
#include <spirv/kProbe.h>
#include <spirv/kProbe64.h>
#include <spirv/kRope.h>
#include <spirv/kRope64.h>
#include <spirv/kRotate.h>
#include <spirv/kRotate64.h>
#include <spirv/kRoute.h>
#include <spirv/kRoute64.h>
#include <spirv/kStoreKv.h>
#include <spirv/kStoreKv64.h>
#include <spirv/kStreamGates.h>
#include <spirv/kStreamGates64.h>
#include <spirv/kStreams.h>
#include <spirv/kStreams64.h>

}  // namespace

std::span<const uint32_t> kernel_code(Kernel kernel, const KernelFeatures& has) {
  using Code = std::span<const uint32_t>;
  if (kernel == Kernel::kMatmul && has.dot) {
    return has.float64 ? Code(kMatmulDot64) : Code(kMatmulDot);
  }
  if (kernel == Kernel::kMatmulEnded && has.dot) {
    return has.float64 ? Code(kMatmulEndedDot64) : Code(kMatmulEndedDot);
  }
  switch (kernel) {
#define LOCKSTEP_KERNEL(name) \
  case Kernel::name:          \
    return has.float64 ? Code(name##64) : Code(name)
    LOCKSTEP_KERNEL(kEmbed);
    LOCKSTEP_KERNEL(kPrepare);
    LOCKSTEP_KERNEL(kMatmul);
    LOCKSTEP_KERNEL(kMatmulEnded);
    LOCKSTEP_KERNEL(kNorm);
    LOCKSTEP_KERNEL(kHeadSquares);
    LOCKSTEP_KERNEL(kNormHeads);
    LOCKSTEP_KERNEL(kRope);
    LOCKSTEP_KERNEL(kRotate);
    LOCKSTEP_KERNEL(kStoreKv);
    LOCKSTEP_KERNEL(kAttention);
    LOCKSTEP_KERNEL(kAttentionMerge);
    LOCKSTEP_KERNEL(kActivate);
    LOCKSTEP_KERNEL(kRoute);
    LOCKSTEP_KERNEL(kElementwise);
    LOCKSTEP_KERNEL(kHeads);
    LOCKSTEP_KERNEL(kLatent);
    LOCKSTEP_KERNEL(kAbsorb);
    LOCKSTEP_KERNEL(kProbe);
    LOCKSTEP_KERNEL(kConvolve);
    LOCKSTEP_KERNEL(kDelta);
    LOCKSTEP_KERNEL(kLayerNorm);
    LOCKSTEP_KERNEL(kIndexScores);
    LOCKSTEP_KERNEL(kChoosePositions);
    LOCKSTEP_KERNEL(kAttentionChosen);
    LOCKSTEP_KERNEL(kPoolKey);
    LOCKSTEP_KERNEL(kStreamGates);
    LOCKSTEP_KERNEL(kStreams);
    LOCKSTEP_KERNEL(kCompress);
    LOCKSTEP_KERNEL(kAttentionCompressed);
    LOCKSTEP_KERNEL(kMatchStreams);
#undef LOCKSTEP_KERNEL
  }
  LOCKSTEP_CHECK(false);
  return {};
}

}  // namespace lockstep::gpu
