#include "planner/shares.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "collective/plan/sum_tree.h"

using namespace lockstep;

namespace {

std::vector<int> shared(int leaves, const std::vector<RankWish>& ranks) {
  const auto found = LeafDealer(leaves).of(ranks);
  REQUIRE(found.has_value());
  CHECK(std::accumulate(found->begin(), found->end(), 0) == leaves);
  return *found;
}

int most_subtrees(const std::vector<int>& leaves) {
  int begin = 0;
  size_t most = 0;
  for (const int own : leaves) {
    most = std::max(most, cover(begin, begin + own).size());
    begin += own;
  }
  return static_cast<int>(most);
}

}  // namespace

TEST_CASE("leaves follow speed") {
  CHECK(shared(64, {{1}, {1}}) == std::vector<int>{32, 32});
  CHECK(shared(64, {{3}, {1}}) == std::vector<int>{48, 16});
  CHECK(shared(64, {{1}}) == std::vector<int>{64});
  CHECK(shared(64, {{2}, {1}, {1}}) == std::vector<int>{32, 16, 16});
  CHECK(shared(1, {{1}, {5}}) == std::vector<int>{0, 1});
}

TEST_CASE("memory bounds a share, however fast the rank is") {
  CHECK(shared(64, {{3, 0.25}, {1, 1}}) == std::vector<int>{16, 48});
  CHECK(shared(64, {{1, 0.5}, {1, 0.25}, {1, 0.25}}) == std::vector<int>{32, 16, 16});
  CHECK(!LeafDealer(64).of(std::vector<RankWish>{{1, 0.5}, {1, 0.4}}));
}

TEST_CASE("ranks get few subtrees if that costs little, and more if it would cost much") {
  // 5:3 of 64 leaves are 40 and 24: 32 + 8 and 8 + 16.
  const std::vector<int> aligned = shared(64, {{5}, {3}});
  CHECK(aligned == std::vector<int>{40, 24});
  // The nearest split of 1.02 to 1 is 32 to 32: 1 % slower than the ideal, but one subtree each.
  CHECK(shared(64, {{1.02}, {1}}) == std::vector<int>{32, 32});
  // Three equal ranks: no split with two subtrees each is close to 22 leaves.
  const std::vector<int> thirds = shared(64, {{1}, {1}, {1}});
  CHECK(*std::max_element(thirds.begin(), thirds.end()) == 22);
  CHECK(most_subtrees(thirds) > kSubtreesMax);
}

TEST_CASE("the slowest rank is never more than three percent slower than it must be") {
  const std::vector<std::vector<RankWish>> cases = {
      {{7}, {2}, {2}}, {{1}, {1}, {1}, {1}, {1}}, {{819}, {546}, {273}}, {{5}, {4}, {3}, {2}, {1}}};
  for (const std::vector<RankWish>& ranks : cases) {
    double speed = 0, slowest = 0;
    for (const RankWish& rank : ranks) speed += rank.speed;
    const std::vector<int> leaves = shared(64, ranks);
    for (size_t i = 0; i < ranks.size(); ++i) {
      slowest = std::max(slowest, leaves[i] / ranks[i].speed);
    }
    // Rounding to whole leaves alone can cost the slowest rank one leaf.
    double least_speed = speed;
    for (const RankWish& rank : ranks) least_speed = std::min(least_speed, rank.speed);
    CHECK(slowest <= (64 / speed + 1 / least_speed) * kSubtreeCostMax);
  }
}
