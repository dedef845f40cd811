#include "engine/choices/prompt_lookup.h"

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {

std::vector<int32_t> guesses_of(const std::vector<int32_t>& tokens, size_t most) {
  std::vector<int32_t> guesses(most);
  guesses.resize(static_cast<size_t>(look_up(tokens, guesses)));
  return guesses;
}

}  // namespace

TEST_CASE("guesses follow an earlier occurrence of the last tokens, the latest first") {
  CHECK(guesses_of({1, 2, 3, 4, 5, 9, 1, 2, 3}, 2) == std::vector<int32_t>{4, 5});
  CHECK(guesses_of({1, 2, 3, 4, 1, 2, 3, 8, 1, 2, 3}, 1) == std::vector<int32_t>{8});
}

TEST_CASE("no more is guessed than was asked for and exists") {
  CHECK(guesses_of({1, 2, 3, 4, 1, 2, 3}, 9) == std::vector<int32_t>{4, 1, 2, 3});
  CHECK(guesses_of({5, 5, 5, 5}, 9) == std::vector<int32_t>{5});
  CHECK(guesses_of({1, 2, 3, 4, 1, 2, 3}, 0).empty());
}

TEST_CASE("tokens that never occurred before yield no guess") {
  CHECK(guesses_of({}, 4).empty());
  CHECK(guesses_of({1, 2, 3}, 4).empty());
  CHECK(guesses_of({9, 2, 3, 4, 1, 2, 3}, 4).empty());
}

TEST_CASE("an occurrence too far back is not found") {
  std::vector<int32_t> tokens{1, 2, 3, 4};
  for (int i = 0; i < kLookupWindow - 4; ++i) tokens.push_back(100 + i);
  tokens.insert(tokens.end(), {1, 2, 3});
  CHECK(guesses_of(tokens, 1) == std::vector<int32_t>{4});
  tokens.insert(tokens.begin() + 10, 5);
  CHECK(guesses_of(tokens, 1).empty());
}
