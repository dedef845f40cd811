// TimeDistribution: a distribution of durations in fixed memory: buckets grow by 1 %, so that a
// percentile is within 0.5 % of the true one; minimum, maximum and mean are exact. One thread. Used
// by `lockstep bench serve`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

class TimeDistribution {
 public:
  void add(double seconds);

  uint64_t count() const { return count_; }
  double mean() const;  // 0 if empty, like all of these
  double max() const { return max_; }
  // The duration that `share` of all did not exceed, 0 < share <= 1.
  double quantile(double share) const;

 private:
  std::vector<uint64_t> buckets_;  // empty until the first add()
  uint64_t count_ = 0;
  double sum_ = 0;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace lockstep
