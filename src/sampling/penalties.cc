#include "sampling/penalties.h"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

std::span<const int32_t> last_tokens(std::span<const int32_t> history, int32_t count) {
  if (count < 0 || static_cast<size_t>(count) >= history.size()) return history;
  return history.last(static_cast<size_t>(count));
}

bool is_repetition_on(const SamplingOptions& options) {
  return options.repetition_penalty != 1 && options.penalty_tokens != 0;
}

bool is_dry_on(const SamplingOptions& options) {
  return options.dry_multiplier != 0 && options.dry_tokens != 0;
}

void penalise_repetition(std::span<const int32_t> tokens, float penalty, PenaltyScratch& scratch,
                         const ScorePart& part) {
  for (const int32_t token : tokens) {
    if (scratch.count(token)++ > 0) continue;
    if (float* score = part.find(token)) {
      *score = clamp_score(*score > 0 ? *score / penalty : *score * penalty);
    }
  }
  for (const int32_t token : tokens) scratch.count(token) = 0;
}

void penalise_presence(std::span<const int32_t> tokens, const SamplingOptions& options,
                       PenaltyScratch& scratch, const ScorePart& part) {
  for (const int32_t token : tokens) ++scratch.count(token);
  for (const int32_t token : tokens) {
    int32_t& count = scratch.count(token);
    if (count == 0) continue;
    const float times = static_cast<float>(count) * options.frequency_penalty;
    if (float* score = part.find(token)) {
      *score = clamp_score(*score - (times + options.presence_penalty));
    }
    count = 0;
  }
}

// lengths[i]: how many tokens before `tokens[i]` equal the last ones, both read backward; at most
// `most`. The Z algorithm over the reversed tokens, where index 0 is the last one.
void find_repetitions(std::span<const int32_t> tokens, size_t most, std::vector<int32_t>& lengths) {
  const size_t size = tokens.size();
  const auto reversed = [&](size_t i) { return tokens[size - 1 - i]; };
  lengths.assign(size, 0);
  size_t left = 0, right = 0;  // the match that reaches furthest: [left, right)
  for (size_t i = 1; i < size; ++i) {
    size_t length = 0;
    if (i < right) {
      length = std::min(right - i, static_cast<size_t>(lengths[size - (i - left)]));
    }
    while (length < most && i + length < size && reversed(length) == reversed(i + length)) ++length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    lengths[size - i] = static_cast<int32_t>(length);
  }
}

double power(double base, int32_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

int32_t& PenaltyScratch::count(int32_t token) {
  const auto index = static_cast<size_t>(token);
  if (index >= counts.size()) counts.resize(index + 1, 0);
  return counts[index];
}

float clamp_score(float score) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::clamp(score, -kMost, kMost);
}

void add_bias(std::span<const LogitBias> biases, const ScorePart& part) {
  for (const LogitBias& one : biases) {
    if (float* score = part.find(one.token)) *score = clamp_score(*score + one.bias);
  }
}

void add_penalties(std::span<const int32_t> history, size_t answer_begin,
                   const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part) {
  if (is_repetition_on(options)) {
    penalise_repetition(last_tokens(history, options.penalty_tokens), options.repetition_penalty,
                        scratch, part);
  }
  if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
    penalise_presence(history.subspan(std::min(answer_begin, history.size())), options, scratch,
                      part);
  }
}

void add_dry(std::span<const int32_t> history, std::span<const int32_t> breakers,
             const SamplingOptions& options, PenaltyScratch& scratch, const ScorePart& part) {
  if (!is_dry_on(options)) return;
  const auto tokens = last_tokens(history, options.dry_tokens);
  const auto is_breaker = [&](int32_t token) {
    return std::find(breakers.begin(), breakers.end(), token) != breakers.end();
  };
  const auto stop = std::find_if(tokens.rbegin(), tokens.rend(), is_breaker);
  const auto most = static_cast<size_t>(stop - tokens.rbegin());
  const int32_t least = std::max(options.dry_allowed_length, 1);
  if (most < static_cast<size_t>(least)) return;
  find_repetitions(tokens, most, scratch.lengths);
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t& longest = scratch.count(tokens[i]);
    longest = std::max(longest, scratch.lengths[i]);
  }
  for (const int32_t token : tokens) {
    int32_t& longest = scratch.count(token);
    float* score = longest >= least && !is_breaker(token) ? part.find(token) : nullptr;
    if (score) {
      const double penalty =
          double{options.dry_multiplier} * power(double{options.dry_base}, longest - least);
      constexpr double kMost = std::numeric_limits<float>::max();
      *score = clamp_score(*score - static_cast<float>(std::clamp(penalty, -kMost, kMost)));
    }
    longest = 0;
  }
}

size_t history_needed(const SamplingOptions& options) {
  const auto needed = [](bool is_on, int32_t count) {
    return !is_on ? size_t{0} : count < 0 ? SIZE_MAX : static_cast<size_t>(count);
  };
  return std::max(needed(is_repetition_on(options), options.penalty_tokens),
                  needed(is_dry_on(options), options.dry_tokens));
}

}  // namespace lockstep
