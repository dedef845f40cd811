#include "cli/text/time_distribution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace lockstep {
namespace {

TEST_CASE("percentiles are within half a percent of the sorted values") {
  std::mt19937_64 random(7);
  std::vector<double> values;
  TimeDistribution times;
  for (int i = 0; i < 10'000; ++i) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    values.push_back(1e-5 * std::pow(10, 6 * share));  // 10 us to 10 s
    times.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = values[static_cast<size_t>(share * 10'000) - 1];
    CHECK(std::abs(times.quantile(share) / exact - 1) <= 0.0051);
  }
  CHECK(times.quantile(1) == values.back());
  CHECK(times.max() == values.back());
  CHECK(times.count() == 10'000);
}

TEST_CASE("without values all is zero, with one all is that value") {
  TimeDistribution times;
  CHECK(times.quantile(0.5) == 0);
  CHECK(times.mean() == 0);
  times.add(0.25);
  CHECK(times.quantile(0.5) == 0.25);
  CHECK(times.quantile(0.001) == 0.25);
  CHECK(times.mean() == 0.25);
}

TEST_CASE("zero and values above the last bucket are counted") {
  TimeDistribution times;
  times.add(0);
  times.add(1e9);
  CHECK(times.quantile(0.5) <= 1e-7);
  CHECK(times.quantile(1) == 1e9);
}

}  // namespace
}  // namespace lockstep
