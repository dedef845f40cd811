// PageDisk: what rank 0's scheduler asks about pages of state, and states of recurrent layers, on
// its machine's disk, besides those in memory. It decides from this which are saved and loaded; the
// ranks do it (page_mover.h). Nothing here touches a disk. One thread.
#pragma once

#include <cstddef>

#include "engine/store/page_store.h"

namespace lockstep {

class PageDisk {
 public:
  virtual ~PageDisk() = default;

  // Whether this rank's part is on disk; for a rank without a part of pages, always.
  virtual bool contains(const PageKey& key) const = 0;
  // Whether the page need not be saved. A rank without a part does not know that.
  virtual bool is_saved(const PageKey& key) const = 0;
  // Whether a page can be saved at once.
  virtual bool has_room() const = 0;
  // The page is useless or cannot be loaded.
  virtual void forget(const PageKey& key) = 0;
  // Size of this rank's part of a page.
  virtual size_t page_bytes() const = 0;

  // The same for the state where the page ends, or for its window page. Every rank that is asked
  // has a part of them, if the model has any.
  virtual bool contains_state(const PageKey& key) const = 0;
  virtual bool has_room_for_state() const = 0;
  virtual void forget_state(const PageKey& key) = 0;
  virtual size_t state_bytes() const = 0;
};

// The disk of a rank with stores, which must outlive it; null: the rank has no such part.
// `has_pages`: some rank has a part of pages.
class StoreDisk final : public PageDisk {
 public:
  StoreDisk(PageStore* pages, PageStore* states, bool has_pages)
      : pages_(pages), states_(states), has_pages_(has_pages) {}

  bool contains(const PageKey& key) const override { return !pages_ || pages_->contains(key); }
  bool is_saved(const PageKey& key) const override {
    return pages_ ? pages_->contains(key) : !has_pages_;
  }
  bool has_room() const override { return !pages_ || pages_->has_room(); }
  void forget(const PageKey& key) override {
    if (pages_) pages_->forget(key);
  }
  size_t page_bytes() const override { return pages_ ? pages_->page_bytes() : 0; }
  bool contains_state(const PageKey& key) const override {
    return states_ && states_->contains(key);
  }
  bool has_room_for_state() const override { return states_ && states_->has_room(); }
  void forget_state(const PageKey& key) override {
    if (states_) states_->forget(key);
  }
  size_t state_bytes() const override { return states_ ? states_->page_bytes() : 0; }

 private:
  PageStore* pages_;
  PageStore* states_;
  bool has_pages_;
};

}  // namespace lockstep
