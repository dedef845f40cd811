#include "engine/run/link_turns.h"

#include <algorithm>

namespace lockstep {

LinkTurns::LinkTurns(const Group& group, std::chrono::milliseconds every, Time now)
    : next_(now + every) {
  const std::span<const LinkCost> costs = group.link_costs();
  if (every.count() == 0 || costs.empty()) return;
  for (int low = 0; low < group.size(); ++low) {
    for (int high = low + 1; high < group.size(); ++high) {
      if (!group.graph().has(low, high)) continue;
      const LinkCost& cost = costs[static_cast<size_t>(low * group.size() + high)];
      turns_.push_back(
          {{low, high},
           std::max<std::chrono::nanoseconds>(every, kShareMax * measuring_time(cost))});
    }
  }
}

std::optional<RankPair> LinkTurns::take(Time now) {
  if (turns_.empty() || now < next_) return std::nullopt;
  const Turn& turn = turns_[at_];
  at_ = (at_ + 1) % turns_.size();
  next_ = now + turn.pause;
  return turn.pair;
}

std::optional<LinkTurns::Time> LinkTurns::next() const {
  return turns_.empty() ? std::nullopt : std::optional(next_);
}

}  // namespace lockstep
