#include "net/byte_budget.h"

#include <algorithm>

namespace lockstep {

ByteHold::Room ByteHold::set(size_t bytes) {
  const ByteBudget::Limits& limits = budget_->limits_;
  const size_t wanted = bytes - std::min(bytes, limits.free_bytes);
  if (wanted == held_) return Room::kYes;
  std::lock_guard lock(budget_->mutex_);
  if (wanted < held_) {
    const size_t less = held_ - wanted;
    budget_->bytes_ -= less;
    const auto own = budget_->of_caller_.find(caller_.id);
    if ((own->second -= less) == 0) budget_->of_caller_.erase(own);
    held_ = wanted;
    return Room::kYes;
  }
  const size_t more = wanted - held_;
  const size_t most = limits.bytes_max - (caller_.is_preferred ? 0 : limits.reserved_bytes);
  if (budget_->bytes_ + more > most) return Room::kAllTaken;
  const auto own = budget_->of_caller_.try_emplace(caller_.id, 0).first;
  if (own->second + more > limits.of_caller_max) {
    if (own->second == 0) budget_->of_caller_.erase(own);
    return Room::kCallerHasItsPart;
  }
  own->second += more;
  budget_->bytes_ += more;
  held_ = wanted;
  return Room::kYes;
}

}  // namespace lockstep
