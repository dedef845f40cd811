// BodyBudget: how many bytes the bodies of all requests may take together, and BodyHold: what one
// request takes of them, for as long as its body is in memory. Used by HttpServer: holds are made
// and grow on its loop's thread, and end on any, where the request is done with.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace lockstep {

class BodyBudget {
 public:
  // The first `free_bytes` of each body are not counted, so that short requests always get through:
  // what they can take is limited by the number of connections.
  BodyBudget(size_t bytes_max, size_t free_bytes) : bytes_max_(bytes_max), free_(free_bytes) {}

  size_t bytes_max() const { return bytes_max_; }
  size_t free_bytes() const { return free_; }

 private:
  friend class BodyHold;
  const size_t bytes_max_;
  const size_t free_;
  // A count alone: nothing else is read or written by what it says, so relaxed order will do.
  std::atomic<size_t> bytes_{0};
};

class BodyHold {
 public:
  explicit BodyHold(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyHold() { budget_->bytes_.fetch_sub(held_, std::memory_order_relaxed); }
  BodyHold(const BodyHold&) = delete;
  BodyHold& operator=(const BodyHold&) = delete;

  // The body has so many bytes by now. False: that is more than is left, and nothing was taken.
  bool grow_to(size_t body_bytes) {
    const size_t wanted = body_bytes - (body_bytes < budget_->free_ ? body_bytes : budget_->free_);
    if (wanted <= held_) return true;
    const size_t more = wanted - held_;
    const size_t before = budget_->bytes_.fetch_add(more, std::memory_order_relaxed);
    if (before + more > budget_->bytes_max_) {
      budget_->bytes_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    held_ = wanted;
    return true;
  }

 private:
  const std::shared_ptr<BodyBudget> budget_;
  size_t held_ = 0;
};

}  // namespace lockstep
