#include "collective/group/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/percentile.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPromptRows = 512;
constexpr float kWireTolerance = 1.0f / 16;  // for seven roundings to 8 bits

CollectiveTimes summarise(std::vector<double>& times_us) {
  std::sort(times_us.begin(), times_us.end());
  const double total = std::accumulate(times_us.begin(), times_us.end(), 0.0);
  return {.min_us = times_us.front(),
          .p50_us = at_percent(times_us, 50),
          .p99_us = at_percent(times_us, 99),
          .max_us = times_us.back(),
          .mean_us = total / static_cast<double>(times_us.size())};
}

}  // namespace

Result<CollectiveTimes> bench_all_reduce(Group& group, size_t bytes, int rounds, bool is_prompt) {
  LOCKSTEP_CHECK(bytes >= sizeof(float) && rounds > 0);
  std::vector<int> begins(static_cast<size_t>(group.size()) + 1);
  std::iota(begins.begin(), begins.end(), 0);
  const LeafShares shares(begins);
  // Values alternate between rounds, so that a stale piece gives a wrong sum.
  const size_t count = bytes / sizeof(float);
  const std::vector<float> own[] = {
      std::vector<float>(count, static_cast<float>(group.rank())),
      std::vector<float>(count, static_cast<float>(group.rank() + 1))};
  std::vector<float> sum(count);
  std::vector<double> times_us;
  times_us.reserve(static_cast<size_t>(rounds));
  const int warm_up_rounds = std::max(10, rounds / 10);
  for (int round = -warm_up_rounds; round < rounds; ++round) {
    const auto start = Clock::now();
    TRY(group.all_reduce(shares, own[round & 1], sum, is_prompt ? kPromptRows : 1));
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    if (round >= 0) times_us.push_back(time.count());
  }
  const int added = ((rounds - 1) & 1) == 0 ? group.size() - 1 : group.size() + 1;
  const auto expected = static_cast<float>(group.size() * added / 2);
  const float tolerance = is_prompt ? expected * kWireTolerance : 0.0f;
  const bool is_right = std::all_of(sum.begin(), sum.end(), [&](float value) {
    return std::fabs(value - expected) <= tolerance;
  });
  if (!is_right) {
    return Error{ErrorCode::kInternal, "the sum of the benchmark is wrong"};
  }
  return summarise(times_us);
}

}  // namespace lockstep
