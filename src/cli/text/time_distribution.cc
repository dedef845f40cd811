#include "cli/text/time_distribution.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kFirstBucketSeconds = 1e-7;  // up to this: the first bucket
constexpr double kGrowth = 1.01;
constexpr size_t kBucketCount = 2784;  // up to some 100,000 s

size_t bucket_of(double seconds) {
  if (!(seconds > kFirstBucketSeconds)) return 0;
  const double steps = std::log(seconds / kFirstBucketSeconds) / std::log(kGrowth);
  return std::min(static_cast<size_t>(steps) + 1, kBucketCount - 1);
}

double middle_of(size_t bucket) {
  return kFirstBucketSeconds * std::pow(kGrowth, static_cast<double>(bucket) - 0.5);
}

}  // namespace

void TimeDistribution::add(double seconds) {
  if (buckets_.empty()) buckets_.resize(kBucketCount);
  ++buckets_[bucket_of(seconds)];
  min_ = count_ == 0 ? seconds : std::min(min_, seconds);
  max_ = count_ == 0 ? seconds : std::max(max_, seconds);
  sum_ += seconds;
  ++count_;
}

double TimeDistribution::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double TimeDistribution::quantile(double share) const {
  if (count_ == 0) return 0;
  const double exact_rank = std::ceil(share * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(exact_rank), 1, count_);
  if (rank == count_) return max_;
  uint64_t passed = 0;
  size_t bucket = 0;
  while (passed + buckets_[bucket] < rank) passed += buckets_[bucket++];
  return std::clamp(middle_of(bucket), min_, max_);
}

}  // namespace lockstep
