#include "device/cpu/router.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "device/device_values.h"
#include "kernels/isa.h"
#include "kernels/math.h"

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

// The experts are given.
Chosen weigh(const RouterRule& rule, std::vector<float> scores, const std::vector<float>& given,
             const std::vector<float>& scales = {}) {
  Chosen chosen{std::vector<int32_t>(given.size()), std::vector<float>(given.size())};
  weigh_experts(rule, scores.data(), given.data(), scales.empty() ? nullptr : scales.data(),
                chosen.experts.data(), chosen.weights.data());
  return chosen;
}

double root_softplus(double x) {
  return std::sqrt(std::log1p(std::exp(x)));
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
  const RouterRule rule{
      .experts = 3, .chosen = 1, .form = RouterForm::kSigmoid, .normalises = false};
  const Chosen chosen = choose(rule, {2, 1, 0}, {0, 0, 5});
  CHECK(chosen.experts[0] == 2);
  CHECK(chosen.weights[0] == doctest::Approx(0.5));
}

TEST_CASE("experts are chosen from the best groups, ranked by their two best experts") {
  const RouterRule rule{
      .experts = 6, .chosen = 2, .form = RouterForm::kSigmoid, .groups = 3, .chosen_groups = 1};
  // The best single expert is in group 0, the best pair in group 2.
  const std::vector<float> none(6, 0.0f);
  CHECK(choose(rule, {9, -9, 0, 0, 2, 2}, none).experts == std::vector<int32_t>{4, 5});
  const RouterRule two{
      .experts = 6, .chosen = 2, .form = RouterForm::kSigmoid, .groups = 3, .chosen_groups = 2};
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

TEST_CASE("a score's root of softplus is its weight, and the bias affects only the choice") {
  const RouterRule rule{.experts = 5,
                        .chosen = 2,
                        .form = RouterForm::kRootSoftplus,
                        .normalises = false,
                        .factor = 1.5f};
  const std::vector<float> scores{-3, 1, 0.5f, -40, 20};
  const Chosen plain = choose(rule, scores, std::vector<float>(5, 0.0f));
  CHECK(plain.experts == std::vector<int32_t>{1, 4});
  CHECK(plain.weights[0] == doctest::Approx(1.5 * root_softplus(1)));
  CHECK(plain.weights[1] == doctest::Approx(1.5 * root_softplus(20)));
  CHECK(choose(rule, scores).weights == plain.weights);
  // The bias is added to the root, not to the product.
  const Chosen biased = choose(rule, scores, {0, 0, 0.4f, 9, -9});
  CHECK(biased.experts == std::vector<int32_t>{2, 3});
  CHECK(biased.weights[0] == doctest::Approx(1.5 * root_softplus(0.5)));
  CHECK(biased.weights[1] == doctest::Approx(1.5 * root_softplus(-40)));
}

TEST_CASE("weights of roots of softplus have the bits of their equation") {
  const RouterRule rule{
      .experts = 4, .chosen = 3, .form = RouterForm::kRootSoftplus, .factor = 2.5f};
  const std::vector<float> scores{-1.25f, 0.75f, 3, -2};
  const Chosen chosen = choose(rule, scores, {0, 0, 0, 0}, {1, 0.5f, 3, 7});
  CHECK(chosen.experts == std::vector<int32_t>{0, 1, 2});
  const auto root = [&](size_t expert) { return std::sqrt(softplus_f32(scores[expert])); };
  const float sum = root(0) + root(1) + root(2);
  CHECK(chosen.weights == std::vector<float>{root(0) / sum * 2.5f * 1, root(1) / sum * 2.5f * 0.5f,
                                             root(2) / sum * 2.5f * 3});
}

TEST_CASE("given experts have the weights of their scores, whatever these are") {
  const std::vector<float> scores{4, -2, 0, 1, 3};
  for (const RouterForm form :
       {RouterForm::kSoftmax, RouterForm::kSigmoid, RouterForm::kRootSoftplus}) {
    const RouterRule rule{.experts = 5, .chosen = 2, .form = form, .factor = 2};
    // The best two are the same, given or chosen.
    const Chosen best = choose(rule, scores), same = weigh(rule, scores, {0, 4});
    CHECK(same.experts == best.experts);
    CHECK(same.weights == best.weights);
    const Chosen others = weigh(rule, scores, {1, 3}, {9, 2, 9, 0.5f, 9});
    CHECK(others.experts == std::vector<int32_t>{1, 3});
    const std::vector<float> plain = weigh(rule, scores, {1, 3}).weights;
    CHECK(others.weights == std::vector<float>{plain[0] * 2, plain[1] * 0.5f});
    CHECK(plain[0] + plain[1] == doctest::Approx(2));
    CHECK(plain[0] < plain[1]);
  }
  const RouterRule rule{.experts = 5, .chosen = 2, .form = RouterForm::kRootSoftplus, .factor = 2};
  CHECK(weigh(rule, scores, {1, 3}).weights[0] ==
        doctest::Approx(2 * root_softplus(-2) / (root_softplus(-2) + root_softplus(1))));
}

TEST_CASE("an expert that is given twice counts twice") {
  const RouterRule rule{
      .experts = 3, .chosen = 3, .form = RouterForm::kRootSoftplus, .factor = 1.5f};
  const Chosen chosen = weigh(rule, {1, 5, -1}, {0, 0, 2});
  CHECK(chosen.experts == std::vector<int32_t>{0, 0, 2});
  const double sum = 2 * root_softplus(1) + root_softplus(-1);
  CHECK(chosen.weights[0] == doctest::Approx(1.5 * root_softplus(1) / sum));
  CHECK(chosen.weights[1] == chosen.weights[0]);
  CHECK(chosen.weights[2] == doctest::Approx(1.5 * root_softplus(-1) / sum));
}

TEST_CASE("a device takes each token's given experts, and needs no bias for them") {
  auto device = std::move(open_device({.kernels = available_kernels().front()}).value());
  const std::vector<float> scores{1, 2, 3, 4, -1, 0, 5, 2}, given{0, 3, 1, 1};
  Route op{.scores = put(*device, scores),
           .tokens = 2,
           .experts = 4,
           .chosen = 2,
           .form = RouterForm::kRootSoftplus,
           .has_given = true,
           .given = put(*device, given),
           .factor = 2,
           .output = room(*device, 4, Access::kHost),
           .weights = room(*device, 4, Access::kHost)};
  op.bias = {op.scores.buffer, 7};  // would not fit
  device->queue(op);
  REQUIRE(device->wait().ok());
  const RouterRule rule{.experts = 4, .chosen = 2, .form = op.form, .factor = 2};
  for (size_t token = 0; token < 2; ++token) {
    const auto of = [&](const std::vector<float>& all, size_t count) {
      const auto begin = all.begin() + static_cast<int>(token * count);
      return std::vector<float>(begin, begin + static_cast<int>(count));
    };
    const Chosen expected = weigh(rule, of(scores, 4), of(given, 2));
    for (size_t i = 0; i < 2; ++i) {
      const size_t at = token * 2 + i;
      CHECK(std::bit_cast<int32_t>(device->host(op.output.buffer)[at]) == expected.experts[i]);
      CHECK(device->host(op.weights.buffer)[at] == expected.weights[i]);
    }
  }
}
