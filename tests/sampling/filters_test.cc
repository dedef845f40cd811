#include "sampling/filters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "sampling/choose.h"
#include "sampling/random_logits.h"

using namespace lockstep;

namespace {

struct Kept {
  int32_t token;
  double probability;
};

std::vector<Kept> softmax(std::span<const float> logits, float temperature) {
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} / temperature);
  std::vector<Kept> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    all.push_back({static_cast<int32_t>(i), std::exp(double{logits[i]} / temperature) / total});
  }
  return all;
}

void normalise(std::vector<Kept>& kept) {
  double total = 0;
  for (const Kept& one : kept) total += one.probability;
  for (Kept& one : kept) one.probability /= total;
}

// Takes from the front of `kept` until `mass` is reached.
void keep_mass(std::vector<Kept>& kept, double mass) {
  double sum = 0;
  size_t count = 0;
  while (count < kept.size() && sum < mass) sum += kept[count++].probability;
  kept.resize(std::max<size_t>(count, 1));
  normalise(kept);
}

bool is_likelier(const Kept& a, const Kept& b) {
  return a.probability > b.probability;
}

// The definitions, computed in double.
std::vector<Kept> reference(std::span<const float> logits, const SamplingOptions& options) {
  std::vector<Kept> kept = softmax(logits, options.temperature);
  std::sort(kept.begin(), kept.end(), is_likelier);
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < kept.size()) {
    kept.resize(static_cast<size_t>(options.top_k));
    normalise(kept);
  }
  if (options.typical_p < 1) {
    double entropy = 0;
    for (const Kept& one : kept) entropy -= one.probability * std::log(one.probability);
    const auto distance = [&](const Kept& one) {
      return std::abs(-std::log(one.probability) - entropy);
    };
    std::sort(kept.begin(), kept.end(),
              [&](const Kept& a, const Kept& b) { return distance(a) < distance(b); });
    keep_mass(kept, double{options.typical_p});
  }
  std::sort(kept.begin(), kept.end(), is_likelier);
  if (options.top_p < 1) keep_mass(kept, double{options.top_p});
  if (options.min_p > 0) {
    const double least = kept.front().probability * double{options.min_p};
    std::erase_if(kept, [&](const Kept& one) { return one.probability < least; });
    normalise(kept);
  }
  return kept;
}

std::vector<Candidate> all_candidates(std::span<const float> logits, float temperature) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates.push_back({logits[i] / temperature, static_cast<int32_t>(i)});
  }
  return candidates;
}

std::set<int32_t> tokens_of(std::span<const Candidate> candidates) {
  std::set<int32_t> tokens;
  for (const Candidate& one : candidates) tokens.insert(one.token);
  return tokens;
}

std::set<int32_t> tokens_of(const std::vector<Kept>& kept) {
  std::set<int32_t> tokens;
  for (const Kept& one : kept) tokens.insert(one.token);
  return tokens;
}

const std::vector<SamplingOptions>& filters() {
  static const std::vector<SamplingOptions> all{
      {.temperature = 1, .top_k = 7},
      {.temperature = 1, .top_p = 0.8f},
      {.temperature = 0.7f, .min_p = 0.1f},
      {.temperature = 1.3f, .typical_p = 0.6f},
      {.temperature = 0.6f, .top_k = 20, .top_p = 0.95f},
      {.temperature = 1, .top_k = 30, .min_p = 0.05f, .typical_p = 0.9f},
      {.temperature = 2, .top_p = 0.9f, .min_p = 0.02f, .typical_p = 0.95f},
      {.temperature = 1, .top_k = 2000, .top_p = 0.5f},
  };
  return all;
}

}  // namespace

TEST_CASE("each filter keeps the tokens of its definition") {
  for (const SamplingOptions& options : filters()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const auto logits = random_logits(60, seed, 2);
      auto candidates = all_candidates(logits, options.temperature);
      filter_candidates(candidates, options);
      CHECK(tokens_of(candidates) == tokens_of(reference(logits, options)));
    }
  }
}

TEST_CASE("at least one token is always left") {
  const SamplingOptions none{.temperature = 1, .top_k = 1, .top_p = 0, .min_p = 1, .typical_p = 0};
  for (const float least : {0.0f, -3e38f}) {
    std::vector<Candidate> candidates{{1, 0}, {least, 1}, {1, 2}};
    filter_candidates(candidates, none);
    REQUIRE(candidates.size() == 1);
    CHECK(candidates[0].token == 0);
  }
  std::vector<Candidate> one{{5, 3}};
  filter_candidates(one, none);
  CHECK(one.size() == 1);
  for (const SamplingOptions& options : filters()) {
    std::vector<Candidate> wide{{-3.4e38f, 0}, {3.4e38f, 1}, {0, 2}};
    filter_candidates(wide, options);
    CHECK(tokens_of(wide).count(1) == 1);
  }
}

TEST_CASE("sampled tokens follow the distribution that the filters leave") {
  constexpr int kDraws = 20000;
  const auto logits = random_logits(12, 4, 2);
  for (const SamplingOptions& filter : filters()) {
    SamplingOptions options = filter;
    std::map<int32_t, int> seen;
    std::vector<Candidate> scratch;
    for (int i = 0; i < kDraws; ++i) {
      options.seed = static_cast<uint64_t>(i);
      ++seen[choose_in_row(logits, options, i % 5, scratch).token];
    }
    const auto expected = reference(logits, options);
    double chi_squared = 0, rest = 0, rest_seen = 0;
    for (const Kept& one : expected) {
      const double wanted = kDraws * one.probability;
      const double got = seen.count(one.token) ? seen[one.token] : 0;
      if (wanted < 10) {  // rare ones are pooled
        rest += wanted;
        rest_seen += got;
      } else {
        chi_squared += (got - wanted) * (got - wanted) / wanted;
      }
      seen.erase(one.token);
    }
    if (rest > 5) chi_squared += (rest_seen - rest) * (rest_seen - rest) / rest;
    CHECK(seen.empty());        // only kept tokens
    CHECK(chi_squared < 37.4);  // at most 12 degrees of freedom, less than one in 5,000
  }
}

TEST_CASE("the lists of any parts give the choice of the whole row") {
  const auto logits = random_logits(500, 8, 2);
  std::vector<Candidate> list, candidates;
  for (SamplingOptions options : filters()) {
    if (options.top_k == 0) continue;
    for (int position = 0; position < 60; ++position) {
      options.seed = static_cast<uint64_t>(position * 7);
      const int32_t whole = choose_in_row(logits, options, position, candidates).token;
      std::vector<Candidate> together;
      for (size_t begin = 0; begin < logits.size();) {
        const size_t end = std::min(logits.size(), begin * 2 + 3);
        list_best(std::span(logits).subspan(begin, end - begin), static_cast<int32_t>(begin),
                  options, static_cast<size_t>(options.top_k), list);
        together.insert(together.begin(), list.begin(), list.end());
        begin = end;
      }
      CHECK(choose_in_lists(together, options, position).token == whole);
    }
  }
}

TEST_CASE("a list has the best tokens in order, the smaller token first, and no forbidden one") {
  const std::vector<float> scores{1, 5, kForbidden, 5, 0, 7};
  std::vector<Candidate> best;
  list_best(scores, 10, {.temperature = 1}, 4, best);
  REQUIRE(best.size() == 4);
  CHECK(best[0].token == 15);
  CHECK(best[1].token == 11);
  CHECK(best[2].token == 13);
  CHECK(best[3].token == 10);
  list_best(scores, 0, {.temperature = 1}, 100, best);
  CHECK(best.size() == 5);
}

TEST_CASE("a forbidden token is never chosen, and if all are forbidden none is") {
  std::vector<float> scores = random_logits(50, 1, 2);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (i % 7 != 3) scores[i] = kForbidden;
  }
  const std::vector<float> none(50, kForbidden);
  std::vector<Candidate> candidates;
  std::vector<SamplingOptions> all = filters();
  all.push_back({});
  all.push_back({.temperature = 1});
  for (const SamplingOptions& options : all) {
    for (int position = 0; position < 50; ++position) {
      CHECK(choose_in_scores(scores, options, position, candidates).token % 7 == 3);
    }
    CHECK(choose_in_scores(none, options, 0, candidates).token == -1);
  }
}
