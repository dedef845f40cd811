// Stamps order users' requests on different nodes: a hybrid logical clock (Kulkarni et al. 2014). A
// stamp follows the wall clock where that is right and never goes back where it is not. Pure; the
// wall clock is passed in. Used by the desired state.
#pragma once

#include <compare>
#include <cstdint>

#include "cluster/node_id.h"

namespace lockstep {

// The year 2200. Later stamps from outside are refused, so that a wrong clock cannot use up the
// range.
inline constexpr int64_t kStampMsMax = 7'258'118'400'000;
inline constexpr int64_t kStampCounterMax = int64_t{1} << 52;

// A total order. Stamps are unique across nodes and across one node's runs: a run may lose what was
// not on disk yet, and the wall clock does not keep the next run from reusing its numbers.
struct Stamp {
  int64_t time_ms = 0;  // since 1970
  int64_t counter = 0;  // of the writes within that millisecond
  NodeId node;
  int64_t incarnation = 0;  // of the node's run, random; not negative

  auto operator<=>(const Stamp&) const = default;
};

class StampClock {
 public:
  StampClock(const NodeId& self, int64_t incarnation) : last_{0, 0, self, incarnation} {}

  // Later than every stamp given or observed so far.
  Stamp next(int64_t wall_ms);
  void observe(const Stamp& seen);

 private:
  Stamp last_;
};

}  // namespace lockstep
