#include "collective/plan/leaf_shares.h"

#include <utility>

#include "base/check.h"

namespace lockstep {

LeafShares::LeafShares(std::vector<int> begins) : begins_(std::move(begins)) {
  LOCKSTEP_CHECK(begins_.size() >= 2 && begins_.front() == 0 && begins_.back() > 0);
  for (size_t rank = 0; rank + 1 < begins_.size(); ++rank) {
    LOCKSTEP_CHECK(begins_[rank] <= begins_[rank + 1]);
    nodes_.push_back(cover(begins_[rank], begins_[rank + 1]));
    node_count_ += static_cast<int>(nodes_.back().size());
  }
}

}  // namespace lockstep
