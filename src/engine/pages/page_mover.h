// PageMover: executes rank 0's orders for pages on one rank: copies its part of them from the
// model's state to its store and back. Each rank of each stage has one, with or without a store.
// The engine's thread uses it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "collective/group/group.h"
#include "engine/pages/page_orders.h"
#include "engine/pages/page_store.h"
#include "model/forward/model.h"

namespace lockstep {

// The longest time a step waits for a disk: less than ranks wait for each other.
inline constexpr std::chrono::milliseconds kPageLoadTimeMax{3'000};

class PageMover {
 public:
  // Both must outlive it; `store` is null if this rank has none.
  PageMover(Model& model, PageStore* store);

  // Called by every rank of the stage's group, before the step's tokens are computed. Returns the
  // outcome common to all of them. Errors are from the device and the group; a disk's refusal is
  // not an error, it only lowers the counts.
  Result<PageOutcome> move(const PageOrders& orders, Group& group);

 private:
  Result<int32_t> save(std::span<const PageOrder> orders);
  int32_t load(std::span<const PageOrder> orders);
  static Result<PageOutcome> agree(PageOutcome own, Group& group);

  Model& model_;
  PageStore* store_;
  std::vector<std::byte> page_;  // being loaded
};

}  // namespace lockstep
