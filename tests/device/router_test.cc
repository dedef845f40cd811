#include "device/cpu/router.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace lockstep;

namespace {

struct Chosen {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Chosen choose(const RouterRule& rule, std::vector<float> scores,
              const std::vector<float>& bias = {}, const std::vector<float>& scales = {}) {
  Chosen chosen{std::vector<int32_t>(static_cast<size_t>(rule.chosen)),
                std::vector<float>(static_cast<size_t>(rule.chosen))};
  choose_experts(rule, scores.data(), bias.empty() ? nullptr : bias.data(),
                 scales.empty() ? nullptr : scales.data(), chosen.experts.data(),
                 chosen.weights.data());
  return chosen;
}

}  // namespace

TEST_CASE(
    "softmax experts: the best ones in ascending order, with weights that sum to the factor") {
  const RouterRule rule{.experts = 4, .chosen = 2, .factor = 3};
  const Chosen chosen = choose(rule, {1, 3, -2, 2});
  CHECK(chosen.experts == std::vector<int32_t>{1, 3});
  CHECK(chosen.weights[0] == doctest::Approx(3 / (1 + std::exp(-1.0))));
  CHECK(chosen.weights[0] + chosen.weights[1] == doctest::Approx(3));
}

TEST_CASE("without normalising, weights are the probabilities") {
  const Chosen chosen = choose({.experts = 3, .chosen = 1, .normalises = false}, {0, 0, 1});
  CHECK(chosen.experts[0] == 2);
  CHECK(chosen.weights[0] == doctest::Approx(std::exp(1.0) / (2 + std::exp(1.0))));
}

TEST_CASE("each expert's own scale multiplies its weight, and does not affect the choice") {
  const RouterRule rule{.experts = 4, .chosen = 2, .factor = 3};
  const Chosen plain = choose(rule, {1, 3, -2, 2});
  const Chosen scaled = choose(rule, {1, 3, -2, 2}, {}, {9, 0.5f, 9, -2});
  CHECK(scaled.experts == plain.experts);
  CHECK(scaled.weights == std::vector<float>{plain.weights[0] * 0.5f, plain.weights[1] * -2});
}

TEST_CASE("among equal experts the first ones are chosen") {
  CHECK(choose({.experts = 5, .chosen = 3}, {7, 7, 7, 7, 7}).experts ==
        std::vector<int32_t>{0, 1, 2});
  CHECK(choose({.experts = 5, .chosen = 2}, {1, 7, 2, 7, 7}).experts == std::vector<int32_t>{1, 3});
}

TEST_CASE("a bias affects the choice but not the weight") {
  const RouterRule rule{.experts = 3, .chosen = 1, .is_sigmoid = true, .normalises = false};
  const Chosen chosen = choose(rule, {2, 1, 0}, {0, 0, 5});
  CHECK(chosen.experts[0] == 2);
  CHECK(chosen.weights[0] == doctest::Approx(0.5));
}

TEST_CASE("experts are chosen from the best groups, ranked by their two best experts") {
  const RouterRule rule{
      .experts = 6, .chosen = 2, .is_sigmoid = true, .groups = 3, .chosen_groups = 1};
  // The best single expert is in group 0, the best pair in group 2.
  const std::vector<float> none(6, 0.0f);
  CHECK(choose(rule, {9, -9, 0, 0, 2, 2}, none).experts == std::vector<int32_t>{4, 5});
  const RouterRule two{
      .experts = 6, .chosen = 2, .is_sigmoid = true, .groups = 3, .chosen_groups = 2};
  CHECK(choose(two, {9, -9, 1, 1, 2, 2}, none).experts == std::vector<int32_t>{4, 5});
  CHECK(choose(two, {9, 0.5f, 1, 1, 2, 2}, none).experts == std::vector<int32_t>{0, 4});
}

TEST_CASE("scores that are NaN still give distinct, existing experts") {
  const Chosen chosen = choose({.experts = 4, .chosen = 3}, {NAN, NAN, NAN, NAN});
  CHECK(chosen.experts.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(chosen.experts[i] >= 0);
    CHECK(chosen.experts[i] < 4);
    if (i > 0) CHECK(chosen.experts[i] > chosen.experts[i - 1]);
  }
}
