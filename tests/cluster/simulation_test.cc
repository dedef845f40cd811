#include "cluster/simulation.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace lockstep;

namespace {

// The first failure among some seeds.
std::string failure_of(Sabotage sabotage) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto result = simulate({.seed = seed, .minutes = 10, .sabotage = sabotage});
    if (result.failure) return *result.failure;
  }
  return {};
}

}  // namespace

TEST_CASE("a seed gives the same events each time, another seed others") {
  const auto first = simulate({.seed = 5, .minutes = 10});
  const auto again = simulate({.seed = 5, .minutes = 10});
  const auto other = simulate({.seed = 6, .minutes = 10});
  CHECK(first.trace == again.trace);
  CHECK(first.events == again.events);
  CHECK(first.trace != other.trace);
  CHECK(first.events > 5'000);
}

TEST_CASE("the simulation finds deliberate mistakes") {
  CHECK(failure_of(Sabotage::kNone) == "");
  CHECK(failure_of(Sabotage::kDiskLies).find("not on the disk") != std::string::npos);
  CHECK(failure_of(Sabotage::kGreedyParts).find("uses") != std::string::npos);
  CHECK(failure_of(Sabotage::kOneLife) != "");
  CHECK(failure_of(Sabotage::kNoUpdates).find("does not know") != std::string::npos);
  CHECK(failure_of(Sabotage::kNoStarts) != "");
  CHECK(failure_of(Sabotage::kDisksForget) != "");
  CHECK(failure_of(Sabotage::kLostGroups).find("would fit") != std::string::npos);
}
