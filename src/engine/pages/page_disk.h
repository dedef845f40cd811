// PageDisk: what rank 0's scheduler asks about pages of state on its machine's disk, besides those
// in memory. It decides from this which pages are saved and loaded; the ranks do it (page_mover.h).
// Nothing here touches a disk. One thread.
#pragma once

#include <cstddef>

#include "engine/pages/page_store.h"

namespace lockstep {

class PageDisk {
 public:
  virtual ~PageDisk() = default;

  virtual bool contains(const PageKey& key) const = 0;
  // Whether a page can be saved at once.
  virtual bool has_room() const = 0;
  // The page is useless or cannot be loaded.
  virtual void forget(const PageKey& key) = 0;
  // Size of this rank's part of a page.
  virtual size_t page_bytes() const = 0;
};

// The disk of a rank with a store, which must outlive it.
class StoreDisk final : public PageDisk {
 public:
  explicit StoreDisk(PageStore& store) : store_(store) {}

  bool contains(const PageKey& key) const override { return store_.contains(key); }
  bool has_room() const override { return store_.has_room(); }
  void forget(const PageKey& key) override { store_.forget(key); }
  size_t page_bytes() const override { return store_.page_bytes(); }

 private:
  PageStore& store_;
};

}  // namespace lockstep
