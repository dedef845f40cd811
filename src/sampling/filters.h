// Filters: restrict a choice to some of the likeliest tokens. Each uses the distribution over the
// tokens left by the previous one. Sums are added in an order that depends only on the candidates,
// so that every cut of the vocabulary keeps the same ones. Pure; any thread.
#pragma once

#include <vector>

#include "sampling/candidate.h"
#include "sampling/options.h"

namespace lockstep {

// Keeps some of `candidates`, which must be either all tokens in ascending order or, with top_k, at
// least the top_k best in any order; not empty. Scores are logits over temperature.
//   top_k: the top_k best;
//   typical_p: those whose surprise -log(p) is nearest to the mean one (the entropy), until their
//              probabilities reach it (Meister et al.: Locally Typical Sampling, 2022);
//   top_p: the likeliest until their probabilities reach it;
//   min_p: those with at least this fraction of the likeliest one's probability.
// At least one is kept.
void filter_candidates(std::vector<Candidate>& candidates, const SamplingOptions& options);

}  // namespace lockstep
