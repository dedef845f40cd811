#include "base/percentile.h"

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

TEST_CASE("a percentile is one of the measured values") {
  const std::vector<double> values{1, 2, 4, 8};
  CHECK(at_percent(values, 0) == 1);
  CHECK(at_percent(values, 50) == 2);
  CHECK(at_percent(values, 99) == 4);
  CHECK(at_percent(values, 100) == 8);
  CHECK(at_percent(std::vector<double>{7}, 50) == 7);
  CHECK(at_percent({}, 50) == 0);
}

TEST_CASE("a percentile of a hundred and one values is the one with that number") {
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back(i);
  for (size_t percent = 0; percent <= 100; ++percent) {
    CHECK(at_percent(values, percent) == static_cast<double>(percent));
  }
}
