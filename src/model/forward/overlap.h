// Whether the sums of a batch are exchanged while the processors compute: the batch then goes
// through the layers in two halves, and the sum of one half travels while the other half is
// computed. The bits are the same. Every rank must decide alike, so the decision is a pure function
// of what all of them know.
#pragma once

namespace lockstep {

enum class Overlap {
  kAuto,  // if it saves time
  kAlways,
  kNever,
};

struct OverlapCase {
  int ranks = 1;
  int tokens = 0;
  bool has_experts = false;             // each half would read most experts' weights again
  bool exchanges_in_attention = false;  // latents, or the squares of heads
};

// The number of tokens in the first half; all of them: no halves.
int first_half(Overlap wish, const OverlapCase& batch);

}  // namespace lockstep
