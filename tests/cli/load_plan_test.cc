#include "cli/bench/load_plan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

namespace lockstep {
namespace {

TEST_CASE("a seed always gives the same requests, another seed others") {
  LoadShape shape{.rate = 5, .prompt_tokens = {10, 20}, .new_tokens = {1, 3}};
  LoadPlan first(shape), again(shape);
  shape.seed = 2;
  LoadPlan other(shape);
  int differing = 0;
  for (int i = 0; i < 100; ++i) {
    const PlannedRequest a = first.next(), b = again.next(), c = other.next();
    CHECK(a.at_s == b.at_s);
    CHECK(first.prompt_ids(a) == again.prompt_ids(b));
    differing += first.prompt_ids(a) == other.prompt_ids(c) ? 0 : 1;
  }
  CHECK(differing == 100);
}

TEST_CASE("requests come at the rate, as irregularly as a Poisson process") {
  LoadPlan plan({.rate = 50});
  double last = 0, sum = 0, squares = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    const double at = plan.next().at_s;
    const double gap = at - last;
    CHECK(gap >= 0);
    sum += gap;
    squares += gap * gap;
    last = at;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(squares / kCount - mean * mean);
  CHECK(mean == doctest::Approx(0.02).epsilon(0.03));
  CHECK(deviation == doctest::Approx(0.02).epsilon(0.05));  // exponential: as the mean
}

TEST_CASE("lengths are drawn from the whole range, ends included") {
  LoadPlan plan({.prompt_tokens = {3, 5}, .new_tokens = {7, 7}});
  std::set<int> lengths;
  for (int i = 0; i < 200; ++i) {
    const PlannedRequest request = plan.next();
    lengths.insert(request.prompt_tokens);
    CHECK(request.new_tokens == 7);
    CHECK(plan.prompt_ids(request).size() == static_cast<size_t>(request.prompt_tokens));
  }
  CHECK(lengths == std::set<int>{3, 4, 5});
}

TEST_CASE("prompts share a beginning of the given length, and differ after it") {
  LoadPlan plan({.prompt_tokens = {100, 100}, .shared_prefix = 0.6, .prefix_count = 2});
  const auto first = plan.prompt_ids(plan.next());
  const auto second = plan.prompt_ids(plan.next());
  const auto third = plan.prompt_ids(plan.next());
  const auto same = [](const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    size_t count = 0;
    while (count < a.size() && a[count] == b[count]) ++count;
    return count;
  };
  CHECK(same(first, third) >= 60);
  CHECK(same(first, third) < 65);
  CHECK(same(first, second) < 5);
}

TEST_CASE("tokens are drawn from the allowed ones") {
  LoadPlan plan({.prompt_tokens = {500, 500}, .first_token = 4, .token_count = 3});
  const auto prompt = plan.prompt_ids(plan.next());
  CHECK(std::set<int32_t>(prompt.begin(), prompt.end()) == std::set<int32_t>{4, 5, 6});
}

TEST_CASE("a length is a number, or two in ascending order") {
  const auto one = parse_length_range("64", "--x");
  REQUIRE(one.ok());
  CHECK(one.value().least == 64);
  CHECK(one.value().most == 64);
  const auto two = parse_length_range("1-9", "--x");
  REQUIRE(two.ok());
  CHECK(two.value().least == 1);
  CHECK(two.value().most == 9);
  for (const char* text : {"", "0", "-4", "5-", "9-1", "1-2-3", "a", "5 ", "99999999999"}) {
    const auto bad = parse_length_range(text, "--x");
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().message.starts_with("--x "));
  }
}

}  // namespace
}  // namespace lockstep
