#include "model/forward/overlap.h"

namespace lockstep {
namespace {

// Measured (docs/speed.md): with 512 tokens halves pay on every kind of link, with 128 the gain is
// noise. Computing a half must take longer than a short message travels: one sum is in flight at a
// time.
constexpr int kTokensMin = 256;

}  // namespace

int first_half(Overlap wish, const OverlapCase& batch) {
  const int least = wish == Overlap::kAlways ? 2 : kTokensMin;
  const bool is_possible =
      batch.ranks > 1 && !batch.exchanges_in_attention && batch.tokens >= least;
  if (!is_possible || wish == Overlap::kNever) return batch.tokens;
  if (wish == Overlap::kAuto && batch.has_experts) return batch.tokens;
  return (batch.tokens + 1) / 2;
}

}  // namespace lockstep
