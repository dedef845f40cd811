// How fast the links of a group are: latency and bandwidth of each pair of ranks, one pair after
// the other. Used by `lockstep probe`, which takes its time; a group measures its own links when it
// is formed and again while it serves (Group::measure_again).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "collective/group/group.h"

namespace lockstep {

// One way (half a round trip), for messages of 8 bytes and of 16 KiB, or of the link's largest
// frame if that is less.
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
  int rounds_max = 2000;  // for each of the two sizes
  // For each of the three measurements of a pair; a slow link gets fewer rounds.
  std::chrono::microseconds budget{100'000};
  std::chrono::milliseconds timeout{20'000};  // for one message
  const std::atomic<bool>* cancelled = nullptr;
};

// All pairs that have a link, as Group::form measured them: without the 16 KiB figures, and with
// the bandwidth of single messages that are each answered. Empty if not measured.
std::vector<PairTimes> formed_pairs(const Group& group);

// Every rank calls it. Rank 0 gets the times of all pairs that have a link, the others none.
Result<std::vector<PairTimes>> probe_pairs(Group& group, const ProbeOptions& options);

// Between two ends of one link: the end that begins gets the times (a and b are not set).
Result<PairTimes> probe_link(Link& link, bool begins, const ProbeOptions& options);

}  // namespace lockstep
