// PageMover: executes rank 0's orders for pages, and for states of recurrent layers or window
// pages, on one rank: copies its part of them from the model's memory to its stores and back. Each
// rank of each stage has one, with or without stores. The engine's thread uses it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "collective/group/group.h"
#include "engine/pages/page_orders.h"
#include "engine/store/page_store.h"
#include "model/forward/model.h"

namespace lockstep {

// The longest time a step waits for a disk: less than ranks wait for each other.
inline constexpr std::chrono::milliseconds kPageLoadTimeMax{3'000};

// A rank's part of a state of the recurrent layers, or of a window page if the model has these.
PageShape stored_state_shape(const Model& model);

class PageMover {
 public:
  struct Stores {
    PageStore* pages = nullptr;   // null: this rank has none, or no part of pages
    PageStore* states = nullptr;  // the same for states or window pages
  };
  // All must outlive it.
  PageMover(Model& model, Stores stores);

  // Called by every rank of the stage's group, before the step's tokens are computed. Returns the
  // outcome common to all of them. Errors are from the device and the group; a disk's refusal is
  // not an error, it only lowers the counts.
  Result<PageOutcome> move(const PageOrders& orders, Group& group);

 private:
  using Clock = std::chrono::steady_clock;

  // A store, and the buffer for what is being loaded from it.
  struct Place {
    PageStore* store = nullptr;
    std::vector<std::byte> bytes{};

    Place(PageStore* of, const PageShape& shape);
    // False: it has no room. `read` fills the bytes that are saved.
    template <class Read>
    Result<bool> save(const PageKey& key, Read read);
    // False: it cannot be loaded in time.
    bool load(const PageKey& key, Clock::time_point end);
  };

  bool lacks_store() const;
  Result<int32_t> save(const PageOrders& orders);
  int32_t load(const PageOrders& orders);
  static Result<PageOutcome> agree(PageOutcome own, Group& group);

  Model& model_;
  bool has_windows_;
  Place pages_, states_;
};

}  // namespace lockstep
