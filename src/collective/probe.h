// How fast the links of a group are: latency and bandwidth of each pair of ranks, one pair after
// the other. Used by `lockstep probe`, which takes its time; what a group has measured when it was
// formed is enough for its status.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "collective/group.h"

namespace lockstep {

// One way, half of there and back; of messages of 8 bytes and of 16 KiB, or of the link's largest
// frame where that is less.
struct PairTimes {
  int32_t a = 0;  // a < b
  int32_t b = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p50_16k_us = 0;
  double p99_16k_us = 0;
  double gbit_s = 0;  // from a to b, in frames of up to 1 MiB, copied in and out
};

struct ProbeOptions {
  int rounds_max = 2000;  // of each of the two sizes
  // For each of the three measurements of a pair; a slow link gets fewer rounds.
  std::chrono::microseconds budget{100'000};
  std::chrono::milliseconds timeout{20'000};  // for one message
  const std::atomic<bool>* cancelled = nullptr;
};

// Of all pairs that have a link, as Group::form has measured them: without the figures of 16 KiB,
// and the bandwidth is that of single messages with an answer each. Empty where it has not.
std::vector<PairTimes> formed_pairs(const Group& group);

// Every rank calls it. Rank 0 has the times of all pairs that have a link, the others get none.
Result<std::vector<PairTimes>> probe_pairs(Group& group, const ProbeOptions& options);

// Between two ends of one link: the one that begins has the times (a and b are not set).
Result<PairTimes> probe_link(Link& link, bool begins, const ProbeOptions& options);

}  // namespace lockstep
