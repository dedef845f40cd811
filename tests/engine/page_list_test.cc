#include "engine/pages/page_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>

using namespace lockstep;

TEST_CASE("a list of pages keeps the order of insertion, whatever is removed") {
  constexpr int kPages = 9;
  PageList list(kPages);
  std::deque<int32_t> expected;
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    const auto page = static_cast<int32_t>(random() % kPages);
    const auto found = std::find(expected.begin(), expected.end(), page);
    CHECK(list.contains(page) == (found != expected.end()));
    if (found != expected.end()) {
      CHECK(list.remove(page));
      expected.erase(found);
    } else if (random() % 2 == 0) {
      list.push_back(page);
      expected.push_back(page);
    } else {
      CHECK(!list.remove(page));
      list.push_front(page);
      expected.push_front(page);
    }
    CHECK(list.front() == (expected.empty() ? PageList::kNone : expected.front()));
    CHECK(list.size() == static_cast<int>(expected.size()));
  }
  while (!expected.empty()) {
    REQUIRE(list.front() == expected.front());
    CHECK(list.remove(list.front()));
    expected.pop_front();
  }
  CHECK(list.front() == PageList::kNone);
}
