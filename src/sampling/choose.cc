#include "sampling/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/math.h"
#include "sampling/random.h"

namespace lockstep {
namespace {

// Without the sign the bits of floats are in the order of their sizes, and those of NaN beyond
// infinity's.
constexpr uint32_t kSizeMask = 0x7fffffff;
constexpr uint32_t kInfiniteSize = 0x7f800000;

uint32_t size_bits(float value) {
  return std::bit_cast<uint32_t>(value) & kSizeMask;
}

Candidate first_broken(std::span<const float> logits, int32_t first_token) {
  const auto broken = std::find_if(logits.begin(), logits.end(),
                                   [](float logit) { return size_bits(logit) >= kInfiniteSize; });
  return {std::numeric_limits<float>::quiet_NaN(),
          first_token + static_cast<int32_t>(broken - logits.begin())};
}

Candidate largest(std::span<const float> logits, int32_t first_token) {
  Candidate best{};
  uint32_t most = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    most = std::max(most, size_bits(logits[i]));
    if (best.token < 0 || logits[i] > best.score) {
      best = {logits[i], first_token + static_cast<int32_t>(i)};
    }
  }
  return most < kInfiniteSize ? best : first_broken(logits, first_token);
}

bool ranks_lower(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.token > b.token);
}

// Keeps the most probable tokens (scores are scaled logits) whose probabilities reach top_p, at
// most top_k of them.
void keep_nucleus(std::vector<Candidate>& tokens, const SamplingOptions& options) {
  const size_t most = options.top_k > 0
                          ? std::min(tokens.size(), static_cast<size_t>(options.top_k))
                          : tokens.size();
  std::make_heap(tokens.begin(), tokens.end(), ranks_lower);
  auto kept = tokens.end();  // [kept, end) holds the tokens taken so far, best last
  const auto take = [&] { std::pop_heap(tokens.begin(), kept--, ranks_lower); };
  const auto taken = [&] { return static_cast<size_t>(tokens.end() - kept); };
  const float top = tokens.front().score;
  double total = 0;
  if (most == tokens.size()) {
    for (const Candidate& t : tokens) total += exp_f32(t.score - top);
  } else {
    while (taken() < most) {
      take();
      total += exp_f32(kept->score - top);
    }
    tokens.erase(tokens.begin(), kept);
    kept = tokens.end();
    std::make_heap(tokens.begin(), tokens.end(), ranks_lower);
  }
  double sum = 0;
  while (taken() < most && sum < total * static_cast<double>(options.top_p)) {
    take();
    sum += exp_f32(kept->score - top);
  }
  if (taken() == 0) take();
  tokens.erase(tokens.begin(), kept);
}

}  // namespace

Candidate better(Candidate a, Candidate b) {
  if (a.token < 0) return b;
  if (b.token < 0) return a;
  if (!is_number(a) && !is_number(b)) return a.token < b.token ? a : b;
  if (!is_number(a) || !is_number(b)) return is_number(a) ? b : a;
  return ranks_lower(a, b) ? b : a;
}

bool is_number(const Candidate& candidate) {
  return !std::isnan(candidate.score);
}

bool are_numbers(std::span<const float> logits) {
  uint32_t most = 0;
  for (const float logit : logits) most = std::max(most, size_bits(logit));
  return most < kInfiniteSize;
}

bool needs_whole_row(const SamplingOptions& options) {
  return options.temperature > 0 && (options.top_k > 0 || options.top_p < 1);
}

Candidate choose_in_part(std::span<const float> logits, int32_t first_token,
                         const SamplingOptions& options, int32_t position) {
  const Candidate top = largest(logits, first_token);
  if (top.token < 0 || !is_number(top) || !(options.temperature > 0)) return top;
  const float scale = 1 / options.temperature;
  const uint64_t key = position_key(options.seed, position);
  // No noise lifts a logit below this over the largest one with the least noise.
  const float least = top.score * scale - (kGumbelMax - kGumbelMin);
  Candidate best{};
  for (size_t i = 0; i < logits.size(); ++i) {
    const float scaled = logits[i] * scale;
    if (!(scaled >= least)) continue;
    const int32_t token = first_token + static_cast<int32_t>(i);
    best = better(best, {scaled + gumbel(key, token), token});
  }
  return best.token < 0 ? top : best;
}

Candidate choose_in_row(std::span<const float> logits, const SamplingOptions& options,
                        int32_t position, std::vector<Candidate>& scratch) {
  if (!needs_whole_row(options)) return choose_in_part(logits, 0, options, position);
  const float scale = 1 / options.temperature;
  scratch.clear();
  uint32_t most = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    most = std::max(most, size_bits(logits[i]));
    scratch.push_back({logits[i] * scale, static_cast<int32_t>(i)});
  }
  if (most >= kInfiniteSize) return first_broken(logits, 0);
  keep_nucleus(scratch, options);
  const uint64_t key = position_key(options.seed, position);
  Candidate best{};
  for (const Candidate& kept : scratch) {
    best = better(best, {kept.score + gumbel(key, kept.token), kept.token});
  }
  return best;
}

}  // namespace lockstep
