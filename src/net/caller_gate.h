// CallerGate: limits how often one address may connect. Each has a token bucket that refills over
// time, so that a stranger's repeated calls cost only a table lookup. A pure function of the times
// it is given. One thread.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "base/text_hash.h"

namespace lockstep {

class CallerGate {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    int burst = 32;
    int per_second = 4;
    size_t addresses_max = 1024;
  };

  explicit CallerGate(const Limits& limits) : limits_(limits) {}

  // Counts this call. False if the address has called too often, or if the table of addresses is
  // full.
  bool admit(const std::string& address, Clock::time_point now);
  // Refunds a call that turned out not to be a stranger's.
  void give_back(const std::string& address, Clock::time_point now);

 private:
  struct Bucket {
    double calls = 0;  // still allowed
    Clock::time_point filled_at;
  };

  double calls_at(const Bucket& bucket, Clock::time_point now) const;
  void forget_full(Clock::time_point now);

  Limits limits_;
  std::unordered_map<std::string, Bucket, TextHash> buckets_;
};

}  // namespace lockstep
