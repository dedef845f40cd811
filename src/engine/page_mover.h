// PageMover: obeys rank 0's orders for pages on one rank: copies its part of them from the model's
// state to its store and back. Each rank of each stage has one, with or without a store. The
// engine's thread uses it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "collective/group.h"
#include "engine/page_orders.h"
#include "engine/page_store.h"
#include "model/model.h"

namespace lockstep {

// What a step waits for a disk at most: less than ranks wait for each other.
inline constexpr std::chrono::milliseconds kPageLoadTimeMax{3'000};

class PageMover {
 public:
  // Both must outlive it; `store` is null where this rank has none.
  PageMover(Model& model, PageStore* store);

  // To be called by every rank of the stage's group, before the step's tokens are computed. What
  // came of it on all of them. Errors are those of the device and the group; what a disk refuses is
  // none, it only counts.
  Result<PageOutcome> move(const PageOrders& orders, Group& group);

 private:
  Result<int32_t> save(std::span<const PageOrder> orders);
  int32_t load(std::span<const PageOrder> orders);
  static Result<PageOutcome> agree(PageOutcome own, Group& group);

  Model& model_;
  PageStore* store_;
  std::vector<std::byte> page_;  // that is loaded
};

}  // namespace lockstep
