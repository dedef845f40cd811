#include "sampling/choose.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>

#include "sampling/random.h"
#include "sampling/random_logits.h"

using namespace lockstep;

namespace {

std::map<int32_t, int> draw(std::span<const float> logits, SamplingOptions options, int count) {
  std::map<int32_t, int> seen;
  std::vector<Candidate> scratch;
  for (int i = 0; i < count; ++i) {
    options.seed = static_cast<uint64_t>(i);
    ++seen[choose_in_row(logits, options, i % 7, scratch).token];
  }
  return seen;
}

}  // namespace

TEST_CASE("greedy takes the largest logit, the first of equal ones") {
  const std::vector<float> logits{1, 5, 2, 5};
  CHECK(choose_in_part(logits, 100, {}, 0).token == 101);
  CHECK(better({5, 3}, {5, 2}).token == 2);
  CHECK(better({}, {-INFINITY, 9}).token == 9);
  CHECK(choose_in_part({}, 0, {}, 0).token == -1);
}

TEST_CASE("the maximum of a row of any length is the first of equal ones, at any position") {
  for (const size_t count : {1, 2, 15, 16, 17, 1023, 1024, 1025, 2047, 3000}) {
    for (const float top : {20.0f, 0.0f, -0.0f, -1e30f}) {
      for (size_t first = 0; first < count; first += count < 20 ? 1 : 333) {
        for (const size_t last : {first, (first + count) / 2, count - 1}) {
          std::vector<float> logits = random_logits(count, 3, 3);
          for (float& logit : logits) logit = top - 1 - std::abs(logit) - std::abs(top) * 0.1f;
          logits[last] = top == 0 ? -top : top;
          logits[first] = top;
          const Candidate found = largest(logits, 7);
          CHECK(found.token == 7 + static_cast<int32_t>(first));
          CHECK(std::signbit(found.score) == std::signbit(top));
          CHECK(found.score == top);
          const Candidate allowed = largest_allowed(logits, 7);
          CHECK(allowed.token == found.token);
          logits[count / 2] = NAN;
          CHECK(largest(logits, 7).token == 7 + static_cast<int32_t>(count / 2));
        }
      }
    }
  }
  CHECK(largest_allowed(std::vector<float>(1500, kForbidden), 0).token == -1);
  CHECK(largest_allowed({}, 0).token == -1);
  std::vector<float> one_allowed(1500, kForbidden);
  one_allowed[1400] = -3e38f;
  CHECK(largest_allowed(one_allowed, 10).token == 1410);
}

TEST_CASE("a NaN or infinite logit is returned as the choice, never another token") {
  for (const float broken : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (const size_t at : {0, 3, 9}) {
      std::vector<float> logits = random_logits(10, 5, 3);
      logits[at] = broken;
      logits[9] = broken;
      CHECK(!are_numbers(logits));
      for (const SamplingOptions options : {SamplingOptions{}, SamplingOptions{.temperature = 0.5f},
                                            SamplingOptions{.temperature = 1, .top_k = 3},
                                            SamplingOptions{.temperature = 1, .top_p = 0.9f}}) {
        std::vector<Candidate> scratch;
        const Candidate whole = choose_in_row(logits, options, 2, scratch);
        CHECK(!is_number(whole));
        CHECK(whole.token == static_cast<int32_t>(at));
        if (part_kind(options) != PartKind::kCandidate) continue;
        const std::span<const float> row(logits);
        for (const size_t cut : {1, 4, 9}) {
          const Candidate first = choose_in_part(row.first(cut), 0, options, 2);
          const Candidate last =
              choose_in_part(row.subspan(cut), static_cast<int32_t>(cut), options, 2);
          for (const Candidate& best : {better(first, last), better(last, first)}) {
            CHECK(!is_number(best));
            CHECK(best.token == static_cast<int32_t>(at));
          }
        }
      }
    }
  }
  CHECK(are_numbers(std::vector<float>{1, -3.4e38f, 3.4e38f, -0.0f}));
}

TEST_CASE("sampled tokens follow the softmax of logits over temperature") {
  const std::vector<float> logits{0, 1, 2, -1, 0.5f};
  constexpr int kDraws = 40000;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const auto seen = draw(logits, {.temperature = temperature}, kDraws);
    double total = 0, chi_squared = 0;
    for (float logit : logits) total += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = kDraws * std::exp(logits[i] / temperature) / total;
      const auto found = seen.find(static_cast<int32_t>(i));
      const double got = found == seen.end() ? 0 : found->second;
      chi_squared += (got - expected) * (got - expected) / expected;
    }
    CHECK(chi_squared < 23.5);  // 4 degrees of freedom, one in 10,000
  }
}

TEST_CASE("the best of the parts' choices is the choice from the whole row") {
  const std::vector<float> logits = random_logits(1000, 3, 3);
  std::vector<Candidate> scratch;
  for (int position = 0; position < 200; ++position) {
    const SamplingOptions options{.temperature = 0.9f, .seed = 11};
    Candidate best{};
    for (size_t begin = 0; begin < logits.size();) {
      const size_t end = std::min(logits.size(), begin * 3 + 17);
      best = better(best, choose_in_part(std::span(logits).subspan(begin, end - begin),
                                         static_cast<int32_t>(begin), options, position));
      begin = end;
    }
    CHECK(best.token == choose_in_row(logits, options, position, scratch).token);
  }
}

TEST_CASE("leaving out hopeless tokens never changes the choice") {
  const std::vector<float> logits = random_logits(400, 9, 3);
  for (int position = 0; position < 300; ++position) {
    const SamplingOptions options{.temperature = 1.5f, .seed = 4};
    const uint64_t key = position_key(options.seed, position);
    Candidate best{};
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto token = static_cast<int32_t>(i);
      best = better(best, {logits[i] * (1 / options.temperature) + gumbel(key, token), token});
    }
    CHECK(choose_in_part(logits, 0, options, position).token == best.token);
  }
}

TEST_CASE("top-k and top-p keep the most probable tokens and no others") {
  const std::vector<float> logits{0, 3, 1, 2.9f, -5};
  for (const auto& [token, count] : draw(logits, {.temperature = 1, .top_k = 2}, 2000)) {
    CHECK((token == 1 || token == 3));
    CHECK(count > 500);
  }
  // Probabilities: 1: 0.478, 3: 0.433, 2: 0.065, 0: 0.024. A nucleus of 0.95 needs three tokens.
  const auto nucleus = draw(logits, {.temperature = 1, .top_p = 0.95f}, 4000);
  CHECK(nucleus.size() == 3);
  CHECK(nucleus.count(2) == 1);
  CHECK(draw(logits, {.temperature = 1, .top_p = 0.0f}, 100).size() == 1);
  CHECK(draw(logits, {.temperature = 1, .top_k = 1}, 100).size() == 1);
  CHECK(draw(logits, {.temperature = 1, .top_k = 3, .top_p = 0.5f}, 1000).size() == 2);
}

TEST_CASE("a choice depends on the seed and the position") {
  const std::vector<float> logits(50, 1.0f);
  const auto at = [&](uint64_t seed, int32_t position) {
    return choose_in_part(logits, 0, {.temperature = 1, .seed = seed}, position).token;
  };
  int same_seed = 0, same_position = 0;
  for (int i = 1; i < 500; ++i) {
    same_seed += at(1, 0) == at(1, i) ? 1 : 0;
    same_position += at(0, 5) == at(static_cast<uint64_t>(i), 5) ? 1 : 0;
  }
  CHECK(same_seed < 40);
  CHECK(same_position < 40);
}

TEST_CASE("the noise stays within the bounds by which tokens are left out") {
  CHECK(gumbel(0, 0) == gumbel(0, 0));
  const auto noise = [](float uniform) { return -log_f32(-log_f32(uniform)); };
  CHECK(noise(0.5f * 0x1p-24f) > kGumbelMin);
  CHECK(noise(1 - 0.5f * 0x1p-23f) < kGumbelMax);
  for (int32_t token = 0; token < 100000; ++token) {
    const float drawn = gumbel(42, token);
    REQUIRE(drawn > kGumbelMin);
    REQUIRE(drawn < kGumbelMax);
  }
}

TEST_CASE("odd logits give a token, not a crash") {
  std::vector<Candidate> scratch;
  const std::vector<float> nan(8, NAN), low(8, -INFINITY), high(8, INFINITY);
  for (const auto& logits : {nan, low, high}) {
    for (const SamplingOptions& options :
         {SamplingOptions{}, SamplingOptions{.temperature = 1},
          SamplingOptions{.temperature = 1, .top_k = 3, .top_p = 0.5f}}) {
      const int32_t token = choose_in_row(logits, options, 0, scratch).token;
      CHECK(token >= 0);
      CHECK(token < 8);
    }
  }
}

TEST_CASE("a temperature near zero acts as zero, whatever the other options") {
  std::vector<float> logits = random_logits(200, 5, 3);
  logits[17] = 0;  // which any scale leaves zero or makes NaN
  logits[3] = 40;
  std::vector<Candidate> scratch;
  for (const float temperature : {1e-45f, 1e-38f, 1e-20f, 0.99e-6f}) {
    for (SamplingOptions options :
         {SamplingOptions{}, SamplingOptions{.top_k = 5}, SamplingOptions{.top_p = 0.5f},
          SamplingOptions{.min_p = 0.1f}, SamplingOptions{.typical_p = 0.5f}}) {
      options.temperature = temperature;
      CHECK(part_kind(options) == PartKind::kCandidate);
      const Candidate chosen = choose_in_row(logits, options, 0, scratch);
      CHECK(chosen.token == 3);
      CHECK(chosen.score == 40);
    }
  }
  CHECK_FALSE(SamplingOptions{.temperature = kTemperatureMin}.is_greedy());
  CHECK(SamplingOptions{.temperature = NAN}.is_greedy());
}

TEST_CASE("at the lowest temperature scores are finite, and one of the best is chosen") {
  std::vector<float> logits = random_logits(50, 6, 3);
  logits[7] = 3e38f;
  logits[8] = -3e38f;
  logits[9] = 0;
  std::vector<Candidate> listed;
  const SamplingOptions options{.temperature = kTemperatureMin, .top_k = 5, .top_p = 0.9f};
  list_best(logits, 0, options, 50, listed);
  for (const Candidate& one : listed) CHECK(std::isfinite(one.score));
  std::vector<Candidate> scratch;
  CHECK(choose_in_row(logits, options, 0, scratch).token == 7);
}
