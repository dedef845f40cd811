#include "sampling/filters.h"

#include <algorithm>
#include <cmath>

#include "kernels/math.h"

namespace lockstep {
namespace {

// exp_f64 is accurate down to this; less likely tokens count as nothing.
constexpr double kLogLeast = -700;

float top_score(const std::vector<Candidate>& tokens) {
  return std::max_element(tokens.begin(), tokens.end(), ranks_lower)->score;
}

// Best first.
void keep_best(std::vector<Candidate>& tokens, size_t count) {
  if (count < tokens.size()) {
    std::nth_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count),
                     tokens.end(), ranks_higher);
    tokens.resize(count);
  }
  std::sort(tokens.begin(), tokens.end(), ranks_higher);
}

// Keeps the tokens whose surprise is nearest to the entropy, until their probabilities reach
// `mass`.
void keep_typical(std::vector<Candidate>& tokens, double mass) {
  const double top = double{top_score(tokens)};
  double total = 0;
  for (const Candidate& t : tokens) total += exp_f64(std::max(t.score - top, kLogLeast));
  const double log_total = log_f64(total);
  const auto log_probability = [&](const Candidate& t) {
    return std::max(t.score - top, kLogLeast) - log_total;
  };
  double entropy = 0;
  for (const Candidate& t : tokens) entropy -= exp_f64(log_probability(t)) * log_probability(t);
  std::sort(tokens.begin(), tokens.end(), [&](const Candidate& a, const Candidate& b) {
    const double far_a = std::abs(-log_probability(a) - entropy);
    const double far_b = std::abs(-log_probability(b) - entropy);
    return far_a < far_b || (far_a == far_b && a.token < b.token);
  });
  double sum = 0;
  size_t kept = 0;
  while (kept < tokens.size() && sum < mass) sum += exp_f64(log_probability(tokens[kept++]));
  tokens.resize(std::max<size_t>(kept, 1));
}

// Takes the best one after another, so that only these get sorted.
void keep_nucleus(std::vector<Candidate>& tokens, double mass) {
  const float top = top_score(tokens);
  double total = 0;
  for (const Candidate& t : tokens) total += exp_f32(t.score - top);
  std::make_heap(tokens.begin(), tokens.end(), ranks_lower);
  auto kept = tokens.end();  // [kept, end) holds the tokens taken so far, the first one last
  double sum = 0;
  while (kept != tokens.begin() && (kept == tokens.end() || sum < total * mass)) {
    std::pop_heap(tokens.begin(), kept--, ranks_lower);
    sum += exp_f32(kept->score - top);
  }
  tokens.erase(tokens.begin(), kept);
}

void keep_likely(std::vector<Candidate>& tokens, float part) {
  const float top = top_score(tokens);
  std::erase_if(tokens, [&](const Candidate& t) {
    return t.score != top && !(exp_f32(t.score - top) >= part);
  });
}

}  // namespace

void filter_candidates(std::vector<Candidate>& candidates, const SamplingOptions& options) {
  if (options.top_k > 0) keep_best(candidates, static_cast<size_t>(options.top_k));
  if (options.typical_p < 1) keep_typical(candidates, double{options.typical_p});
  if (options.top_p < 1) keep_nucleus(candidates, double{options.top_p});
  if (options.min_p > 0) keep_likely(candidates, options.min_p);
}

}  // namespace lockstep
