// Whether the sums of a batch travel while the processors compute: its tokens then go through the
// layers in two halves, and the sum of one half is exchanged while the other half is computed. The
// bits are the same. Every rank must decide alike, so the decision is a pure function of what all
// of them know.
#pragma once

namespace lockstep {

enum class Overlap {
  kAuto,  // where it saves time
  kAlways,
  kNever,
};

struct OverlapCase {
  int ranks = 1;
  int tokens = 0;
  bool has_experts = false;   // each half would read the weights of most experts again
  bool cuts_latents = false;  // such a layer has an exchange inside its attention
};

// The tokens of the first half; all of them: no halves.
int first_half(Overlap wish, const OverlapCase& batch);

}  // namespace lockstep
