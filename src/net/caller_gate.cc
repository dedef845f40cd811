#include "net/caller_gate.h"

#include <algorithm>

namespace lockstep {

bool CallerGate::admit(const std::string& address, Clock::time_point now) {
  auto found = buckets_.find(address);
  if (found == buckets_.end()) {
    if (buckets_.size() >= limits_.addresses_max) forget_full(now);
    if (buckets_.size() >= limits_.addresses_max) return false;
    found = buckets_.emplace(address, Bucket{static_cast<double>(limits_.burst), now}).first;
  }
  Bucket& bucket = found->second;
  bucket = {calls_at(bucket, now), now};
  if (bucket.calls < 1) return false;
  bucket.calls -= 1;
  return true;
}

void CallerGate::give_back(const std::string& address, Clock::time_point now) {
  const auto found = buckets_.find(address);
  if (found == buckets_.end()) return;  // its bucket was full, and so dropped
  Bucket& bucket = found->second;
  bucket = {std::min<double>(limits_.burst, calls_at(bucket, now) + 1), now};
}

double CallerGate::calls_at(const Bucket& bucket, Clock::time_point now) const {
  const std::chrono::duration<double> passed = now - bucket.filled_at;
  return std::min<double>(limits_.burst, bucket.calls + passed.count() * limits_.per_second);
}

// A full bucket is equivalent to a new one.
void CallerGate::forget_full(Clock::time_point now) {
  std::erase_if(buckets_,
                [&](const auto& entry) { return calls_at(entry.second, now) >= limits_.burst; });
}

}  // namespace lockstep
