// Whether the two projections to the latents of latent attention (q_a_proj, kv_a_proj) are cut over
// the ranks. If so, a rank reads only its rows of them, and one more exchange per layer gathers the
// parts; the answer's bits are the same. Every rank must decide alike, so the decision is a pure
// function of what all of them know, without measurements.
#pragma once

#include <cstdint>

#include "transport/link_kind.h"

namespace lockstep {

enum class LatentCut {
  kAuto,  // if it saves time, by latent_cut_pays()
  kAlways,
  kNever,
};

struct LatentCutCase {
  uint64_t layer_bytes = 0;  // of both matrices of a layer, as stored
  int rows = 0;              // of both: floats exchanged per token
  int ranks = 1;
  LinkKind link = LinkKind::kShm;
};

// For one layer and one token.
struct LatentCutTimes {
  double saved_us = 0;     // from bytes that a rank no longer reads
  double exchange_us = 0;  // the cost of that
};

LatentCutTimes latent_cut_times(const LatentCutCase& latent_case);
bool latent_cut_pays(const LatentCutCase& latent_case);
// Never with one rank, which has no peer to exchange with.
bool cuts_latents(LatentCut wish, const LatentCutCase& latent_case);

}  // namespace lockstep
