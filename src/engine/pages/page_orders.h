// PageOrders: rank 0's orders to every rank of every stage about pages of state, and about states
// of recurrent layers or window pages, of which no model has both. They are executed before a step
// is computed: those to save on each rank's disk, pages first, then those to load from it, again
// pages first. Part of a Step; most steps have none, and none do if rank 0 keeps nothing on disk.
// The outcome returns to rank 0 with the step's work and result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/store/page_store.h"
#include "model/forward/batch.h"

namespace lockstep {

// Per step. As many saves as a store has memory for at once.
inline constexpr size_t kPageSavesMax = kStagedPagesMax;
inline constexpr size_t kPageLoadsMax = 16;
// The same for states of recurrent layers, each as large as many pages; and for window pages.
inline constexpr size_t kStateSavesMax = 1;
inline constexpr size_t kStateLoadsMax = 1;
inline constexpr size_t kWindowSavesMax = kPageSavesMax;
inline constexpr size_t kWindowLoadsMax = kPageLoadsMax;

struct PageOrder {
  int32_t page = 0;
  PageKey key{};
};

struct StateOrder {
  int32_t state = 0;  // or the number of a window page
  PageKey key{};      // of the page where it ends
};

struct PageOrders {
  std::vector<PageOrder> saves;
  std::vector<StateOrder> state_saves;
  std::vector<PageOrder> loads;
  std::vector<StateOrder> state_loads;

  bool empty() const {
    return saves.empty() && state_saves.empty() && loads.empty() && state_loads.empty();
  }
  void clear();
};

// How many of the orders to save and to load, counted from the first, all ranks asked have
// executed.
struct PageOutcome {
  static constexpr int32_t kNoStore = -1;  // at least one rank has none
  static constexpr auto kSavesMax = static_cast<int32_t>(kPageSavesMax + kWindowSavesMax);
  static constexpr auto kLoadsMax = static_cast<int32_t>(kPageLoadsMax + kWindowLoadsMax);

  int32_t saved = 0;
  int32_t loaded = 0;

  bool lacks_store() const { return saved == kNoStore || loaded == kNoStore; }
};

// The outcome that holds for both.
PageOutcome least_of(PageOutcome a, PageOutcome b);

size_t page_orders_bytes_max();
// Appends whole words of four bytes.
void append_page_orders(const PageOrders& orders, std::vector<std::byte>& bytes);
// Reads from the front of `bytes` and returns the rest. kCorrupt if they break a limit.
Result<std::span<const std::byte>> take_page_orders(std::span<const std::byte> bytes,
                                                    const BatchLimits& limits, PageOrders& orders);

}  // namespace lockstep
