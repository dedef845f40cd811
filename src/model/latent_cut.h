// Whether the two projections to the latents of latent attention (q_a_proj, kv_a_proj) are cut over
// the ranks. Cut, a rank reads its rows of them alone, and one more exchange a layer brings the
// parts together; the bits of the answer are the same. Every rank must decide alike, so the
// decision is a pure function of what all of them know, and nothing is measured.
#pragma once

#include <cstdint>

#include "transport/link_kind.h"

namespace lockstep {

enum class LatentCut {
  kAuto,  // where it saves time, by latent_cut_pays()
  kAlways,
  kNever,
};

struct LatentCutCase {
  uint64_t layer_bytes = 0;  // of both matrices of a layer, as they are stored
  int rows = 0;              // of both: what is exchanged of each token, in floats
  int ranks = 1;
  LinkKind link = LinkKind::kShm;
};

// Of one layer, for one token.
struct LatentCutTimes {
  double saved_us = 0;     // bytes that a rank no longer reads
  double exchange_us = 0;  // what that costs
};

LatentCutTimes latent_cut_times(const LatentCutCase& latent_case);
bool latent_cut_pays(const LatentCutCase& latent_case);
// Never with one rank, which has nobody to exchange with.
bool cuts_latents(LatentCut wish, const LatentCutCase& latent_case);

}  // namespace lockstep
