#include "sampling/penalties.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace lockstep;

namespace {

constexpr int32_t kSmallVocabulary = 30;

std::vector<float> random_scores(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> scores(kSmallVocabulary);
  for (float& score : scores) score = normal(random);
  return scores;
}

// With repetitions of every length.
std::vector<int32_t> random_history(unsigned seed, size_t size) {
  std::mt19937 random(seed);
  std::vector<int32_t> history;
  while (history.size() < size) {
    if (!history.empty() && random() % 3 == 0) {
      const size_t from = random() % history.size();
      const size_t count = std::min<size_t>(random() % 12, history.size() - from);
      for (size_t i = 0; i < count; ++i) history.push_back(history[from + i]);
    } else {
      history.push_back(static_cast<int32_t>(random() % 5));
    }
  }
  history.resize(size);
  return history;
}

// On the whole row and on three parts, which must agree to the bit.
template <class Apply>
std::vector<float> applied(const std::vector<float>& scores, const Apply& apply) {
  PenaltyScratch scratch;
  std::vector<float> whole = scores;
  apply(ScorePart{whole, 0}, scratch);
  std::vector<float> cut = scores;
  for (const auto& [begin, end] :
       {std::pair{0, 3}, std::pair{3, 3}, std::pair{3, kSmallVocabulary}}) {
    const std::span<float> part(cut.data() + begin, static_cast<size_t>(end - begin));
    apply(ScorePart{part, begin}, scratch);
  }
  CHECK(cut == whole);
  CHECK(std::ranges::all_of(scratch.counts, [](int32_t count) { return count == 0; }));
  return whole;
}

void check_near(const std::vector<float>& got, const std::map<int32_t, double>& expected,
                const std::vector<float>& before) {
  for (int32_t token = 0; token < kSmallVocabulary; ++token) {
    const auto index = static_cast<size_t>(token);
    CAPTURE(token);
    if (expected.count(token) == 0) {
      CHECK(got[index] == before[index]);
    } else {
      CHECK(got[index] == doctest::Approx(expected.at(token)).epsilon(1e-5));
    }
  }
}

// The definition: for each position in the history, how many tokens before it equal the history's
// end.
std::map<int32_t, int> longest_repetitions(const std::vector<int32_t>& tokens,
                                           const std::set<int32_t>& breakers) {
  std::map<int32_t, int> longest;
  const auto size = static_cast<int>(tokens.size());
  for (int next = 1; next < size; ++next) {
    int length = 0;
    while (length < next && tokens[static_cast<size_t>(next - 1 - length)] ==
                                tokens[static_cast<size_t>(size - 1 - length)]) {
      if (breakers.count(tokens[static_cast<size_t>(size - 1 - length)])) break;
      ++length;
    }
    int& most = longest[tokens[static_cast<size_t>(next)]];
    most = std::max(most, length);
  }
  return longest;
}

}  // namespace

TEST_CASE("repetition divides positive and multiplies negative logits, once per token") {
  const auto scores = random_scores(1);
  for (const int32_t last : {-1, 0, 1, 5, 1000}) {
    const auto history = random_history(2, 40);
    const SamplingOptions options{.repetition_penalty = 1.3f, .penalty_tokens = last};
    std::map<int32_t, double> expected;
    const size_t count =
        last < 0 ? history.size() : std::min(history.size(), static_cast<size_t>(last));
    for (size_t i = history.size() - count; i < history.size(); ++i) {
      const double score = scores[static_cast<size_t>(history[i])];
      expected[history[i]] = score > 0 ? score / 1.3 : score * 1.3;
    }
    const auto got = applied(scores, [&](const ScorePart& part, PenaltyScratch& scratch) {
      add_penalties(history, history.size(), options, scratch, part);
    });
    check_near(got, expected, scores);
  }
}

TEST_CASE("presence and frequency are subtracted only for tokens of the answer") {
  const auto scores = random_scores(3);
  const auto history = random_history(5, 60);
  const SamplingOptions options{.presence_penalty = 0.7f, .frequency_penalty = -0.4f};
  for (const size_t answer : {size_t{0}, size_t{20}, size_t{59}, size_t{60}}) {
    std::map<int32_t, int> counts;
    for (size_t i = answer; i < history.size(); ++i) ++counts[history[i]];
    std::map<int32_t, double> expected;
    for (const auto& [token, count] : counts) {
      expected[token] = double{scores[static_cast<size_t>(token)]} - 0.7 + 0.4 * count;
    }
    const auto got = applied(scores, [&](const ScorePart& part, PenaltyScratch& scratch) {
      add_penalties(history, answer, options, scratch, part);
    });
    check_near(got, expected, scores);
  }
}

TEST_CASE("DRY makes tokens that extend a repetition less likely, by its length") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto scores = random_scores(seed);
    const auto history = random_history(seed, 5 + seed * 3);
    const std::vector<int32_t> breakers =
        seed % 3 == 0 ? std::vector<int32_t>{4} : std::vector<int32_t>{};
    SamplingOptions options{.dry_multiplier = 0.8f, .dry_base = 1.75f, .dry_allowed_length = 2};
    if (seed % 4 == 1) options.dry_tokens = 17;
    std::vector<int32_t> window = history;
    if (options.dry_tokens > 0 && window.size() > 17)
      window.erase(window.begin(), window.end() - 17);
    std::map<int32_t, double> expected;
    for (const auto& [token, length] :
         longest_repetitions(window, {breakers.begin(), breakers.end()})) {
      const bool is_breaker = std::ranges::count(breakers, token) > 0;
      if (length < 2 || is_breaker) continue;
      expected[token] =
          scores[static_cast<size_t>(token)] - double{0.8f} * std::pow(1.75, length - 2);
    }
    const auto got = applied(scores, [&](const ScorePart& part, PenaltyScratch& scratch) {
      add_dry(history, breakers, options, scratch, part);
    });
    check_near(got, expected, scores);
  }
}

TEST_CASE("long repetitions and odd values give finite logits") {
  const std::vector<int32_t> history(5000, 1);
  std::vector<float> scores(kSmallVocabulary, 3e38f);
  PenaltyScratch scratch;
  const ScorePart part{scores, 0};
  add_dry(history, {}, {.dry_multiplier = 1e30f, .dry_base = 1e30f}, scratch, part);
  CHECK(std::isfinite(scores[1]));
  CHECK(scores[1] < 0);
  add_penalties(history, 0, {.repetition_penalty = 1e-30f, .frequency_penalty = -1e38f}, scratch,
                part);
  CHECK(std::isfinite(scores[1]));
  const std::vector<LogitBias> biases{{1, 1e38f}, {2, 3e38f}, {-5, 1}, {kSmallVocabulary, 1}};
  add_bias(biases, part);
  CHECK(std::ranges::all_of(scores, [](float score) { return std::isfinite(score); }));
}

TEST_CASE("the history that is kept depends on the enabled penalties") {
  CHECK(history_needed({}) == 0);
  CHECK(history_needed({.presence_penalty = 1, .frequency_penalty = 1}) == 0);
  CHECK(history_needed({.repetition_penalty = 1.1f}) == SIZE_MAX);
  CHECK(history_needed({.repetition_penalty = 1.1f, .penalty_tokens = 64}) == 64);
  CHECK(history_needed({.repetition_penalty = 1.1f, .penalty_tokens = 0}) == 0);
  CHECK(history_needed({.repetition_penalty = 1.1f,
                        .penalty_tokens = 64,
                        .dry_multiplier = 1,
                        .dry_tokens = 256}) == 256);
}
