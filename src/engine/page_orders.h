// PageOrders: what rank 0 tells every rank of every stage to do with pages of state before a step
// is computed: pages to be saved on each rank's disk, and then pages to be loaded from it. Part of
// a Step; most steps have none, and none ever has where rank 0 keeps nothing on a disk. What came
// of the orders goes the way of the step's work and result back to rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/page_store.h"
#include "model/batch.h"

namespace lockstep {

// In one step. As many saves as a store has memory for at once.
inline constexpr size_t kPageSavesMax = kStagedPagesMax;
inline constexpr size_t kPageLoadsMax = 16;

struct PageOrder {
  int32_t page = 0;
  PageKey key{};
};

struct PageOrders {
  std::vector<PageOrder> saves;
  std::vector<PageOrder> loads;

  bool empty() const { return saves.empty() && loads.empty(); }
  void clear();
};

// How many of the orders, from the first one on, every rank that was asked has obeyed.
struct PageOutcome {
  static constexpr int32_t kNoStore = -1;  // of one rank at least

  int32_t saved = 0;
  int32_t loaded = 0;

  bool lacks_store() const { return saved == kNoStore || loaded == kNoStore; }
};

// Of both: what holds for all ranks.
PageOutcome least_of(PageOutcome a, PageOutcome b);

size_t page_orders_bytes_max();
// Behind what is there already; whole words of four bytes.
void append_page_orders(const PageOrders& orders, std::vector<std::byte>& bytes);
// From the front of `bytes`, and returns the rest. kCorrupt if they break a limit.
Result<std::span<const std::byte>> take_page_orders(std::span<const std::byte> bytes,
                                                    const BatchLimits& limits, PageOrders& orders);

}  // namespace lockstep
