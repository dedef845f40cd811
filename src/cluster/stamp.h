// Stamps order what users ask for on different nodes: a hybrid logical clock (Kulkarni et al.
// 2014). A stamp follows the wall clock where that is right and never goes back where it is not.
// Pure; the wall clock is passed in. Used by the desired state.
#pragma once

#include <compare>
#include <cstdint>

#include "cluster/node_id.h"

namespace lockstep {

// The year 2200. A stamp from outside that is later is refused, so that a clock gone wild cannot
// use up the numbers.
inline constexpr int64_t kStampMsMax = 7'258'118'400'000;
inline constexpr int64_t kStampCounterMax = int64_t{1} << 52;

// A total order. No two nodes give the same stamp, and neither do two lives of one node: a life may
// lose what it wrote before the disk had it, and the wall clock does not keep the next one from
// counting over the same numbers.
struct Stamp {
  int64_t time_ms = 0;  // since 1970
  int64_t counter = 0;  // of the writes within that millisecond
  NodeId node;
  int64_t incarnation = 0;  // the life of the node, drawn at random at its start; not negative

  auto operator<=>(const Stamp&) const = default;
};

class StampClock {
 public:
  StampClock(const NodeId& self, int64_t incarnation) : last_{0, 0, self, incarnation} {}

  // Later than every stamp that was given or observed.
  Stamp next(int64_t wall_ms);
  void observe(const Stamp& seen);

 private:
  Stamp last_;
};

}  // namespace lockstep
