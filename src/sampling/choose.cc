#include "sampling/choose.h"

#include <algorithm>
#include <limits>

#include "sampling/filters.h"
#include "sampling/random.h"

namespace lockstep {
namespace {

Candidate add_noise(std::span<const float> logits, int32_t first_token,
                    const SamplingOptions& options, int32_t position, const Candidate& top) {
  const float scale = 1 / options.temperature;
  const uint64_t key = position_key(options.seed, position);
  // Below this no noise lifts a logit above the largest one with the least noise.
  const float least = top.score * scale - (kGumbelMax - kGumbelMin);
  Candidate best{};
  for (size_t i = 0; i < logits.size(); ++i) {
    const float scaled = logits[i] * scale;
    if (!(scaled >= least)) continue;
    const int32_t token = first_token + static_cast<int32_t>(i);
    const float score = scaled + gumbel(key, token);
    if (best.token < 0 || score > best.score) best = {score, token};
  }
  return best.token < 0 ? top : best;
}

Candidate add_noise(std::span<const Candidate> kept, const SamplingOptions& options,
                    int32_t position) {
  const uint64_t key = position_key(options.seed, position);
  Candidate best{};
  for (const Candidate& one : kept) {
    const Candidate noisy{one.score + gumbel(key, one.token), one.token};
    if (best.token < 0 || ranks_lower(best, noisy)) best = noisy;
  }
  return best;
}

// Never infinite, so that differences are numbers.
float scaled_score(float score, float scale) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::clamp(score * scale, -kMost, kMost);
}

}  // namespace

PartKind part_kind(const SamplingOptions& options) {
  if (options.is_greedy()) return PartKind::kCandidate;
  if (options.top_k > 0) return options.top_k <= kListMax ? PartKind::kList : PartKind::kRow;
  const bool keeps_all = options.top_p >= 1 && options.typical_p >= 1 && !(options.min_p > 0);
  return keeps_all ? PartKind::kCandidate : PartKind::kRow;
}

Candidate choose_in_part(std::span<const float> logits, int32_t first_token,
                         const SamplingOptions& options, int32_t position) {
  const Candidate top = largest(logits, first_token);
  if (top.token < 0 || !is_number(top) || options.is_greedy()) return top;
  return add_noise(logits, first_token, options, position, top);
}

Candidate choose_among(std::span<const float> scores, int32_t first_token,
                       const SamplingOptions& options, int32_t position) {
  const Candidate top = largest_allowed(scores, first_token);
  if (top.token < 0 || options.is_greedy()) return top;
  return add_noise(scores, first_token, options, position, top);
}

// A heap of the best so far, the worst of them at the front.
void list_best(std::span<const float> scores, int32_t first_token, const SamplingOptions& options,
               size_t count, std::vector<Candidate>& best) {
  const float scale = 1 / options.temperature;
  best.clear();
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == kForbidden) continue;
    const Candidate one{scaled_score(scores[i], scale), first_token + static_cast<int32_t>(i)};
    if (best.size() == count) {
      if (!ranks_lower(best.front(), one)) continue;
      std::pop_heap(best.begin(), best.end(), ranks_higher);
      best.pop_back();
    }
    best.push_back(one);
    std::push_heap(best.begin(), best.end(), ranks_higher);
  }
  std::sort_heap(best.begin(), best.end(), ranks_higher);
}

Candidate choose_in_scores(std::span<const float> scores, const SamplingOptions& options,
                           int32_t position, std::vector<Candidate>& candidates) {
  const PartKind kind = part_kind(options);
  if (kind == PartKind::kCandidate) return choose_among(scores, 0, options, position);
  const float scale = 1 / options.temperature;
  candidates.clear();
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == kForbidden) continue;
    candidates.push_back({scaled_score(scores[i], scale), static_cast<int32_t>(i)});
  }
  return choose_in_lists(candidates, options, position);
}

Candidate choose_in_lists(std::vector<Candidate>& candidates, const SamplingOptions& options,
                          int32_t position) {
  if (candidates.empty()) return {};
  filter_candidates(candidates, options);
  return add_noise(candidates, options, position);
}

Candidate choose_in_row(std::span<const float> logits, const SamplingOptions& options,
                        int32_t position, std::vector<Candidate>& candidates) {
  if (part_kind(options) == PartKind::kCandidate) {
    return choose_in_part(logits, 0, options, position);
  }
  if (!are_numbers(logits)) return first_broken(logits, 0);
  return choose_in_scores(logits, options, position, candidates);
}

}  // namespace lockstep
