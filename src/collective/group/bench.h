// How long an exchange takes. Every rank of the group calls the same function; used by `lockstep
// bench collective` and by bench/.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "collective/group/group.h"

namespace lockstep {

struct CollectiveTimes {
  double min_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double max_us = 0;
  double mean_us = 0;
};

// The time of one all_reduce of `bytes` bytes (whole floats, at least one) as this rank sees it,
// over `rounds` rounds back to back after a warm-up. As in decode, no barrier separates rounds: no
// rank can end a round before all have begun it. kInternal if a sum is wrong. With `is_prompt` it
// uses the group's wire format and checks only the sizes of sums.
Result<CollectiveTimes> bench_all_reduce(Group& group, size_t bytes, int rounds,
                                         bool is_prompt = false);

}  // namespace lockstep
