#include "model/overlap.h"

namespace lockstep {
namespace {

// Measured (docs/speed.md): with 512 tokens halves gain on every kind of link, with 128 no more
// than noise. A half must take longer to compute than a short message travels: one sum at a time is
// under way.
constexpr int kTokensMin = 256;

}  // namespace

int first_half(Overlap wish, const OverlapCase& batch) {
  const int least = wish == Overlap::kAlways ? 2 : kTokensMin;
  const bool is_possible = batch.ranks > 1 && !batch.cuts_latents && batch.tokens >= least;
  if (!is_possible || wish == Overlap::kNever) return batch.tokens;
  if (wish == Overlap::kAuto && batch.has_experts) return batch.tokens;
  return (batch.tokens + 1) / 2;
}

}  // namespace lockstep
