// LinkTurns: decides when the ranks of a stage measure a link again, and which: one pair after the
// other, so that a status shows current figures. Measuring takes at most a thousandth of the time.
// Rank 0 asks; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "collective/group/group.h"

namespace lockstep {

class LinkTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kShareMax = 1000;  // of the time, one part in this many is for measuring

  // All pairs of `group` that have a link, if it was measured when it was formed; `every`: at least
  // this long between two turns, 0: no link is measured again.
  LinkTurns(const Group& group, std::chrono::milliseconds every, Time now);

  // The pair whose turn it is, if it is time for one.
  std::optional<RankPair> take(Time now);
  // When it is time for the next one; nothing: never.
  std::optional<Time> next() const;

 private:
  struct Turn {
    RankPair pair;
    std::chrono::nanoseconds pause;  // after it
  };
  std::vector<Turn> turns_;
  size_t at_ = 0;
  Time next_;
};

}  // namespace lockstep
