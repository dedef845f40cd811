// WindowCache: which page has which window page (WindowNeed in model/load/sequence_state.h). A page
// gets one when a sequence begins to compute it, or loads it from disk, and keeps it after the last
// sequence that needs it, until another page takes it: the least useful first, and among equals the
// one that became unused first.
//
// A use is that of one sequence. One thread; allocates nothing after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/pages/page_list.h"

namespace lockstep {

class WindowCache {
 public:
  static constexpr int32_t kNone = -1;

  // The use that an unused window page may still be of.
  enum class Worth : uint8_t {
    kLittle,    // sequences have passed it
    kInterval,  // going on at some place of a text, of which there is one every kSnapshotPositions
    kEnd,       // going on where a beginning ends that may come again
  };

  // `windows`: as many as WindowNeed says for `reach`, or 0: the model has no window pages.
  WindowCache(int windows, int reach, int pages);

  bool is_needed() const { return !uses_.empty(); }
  // The first page of which a token at `position` needs the window page.
  int first_page(int position) const;

  // The window page of a page, or kNone; and the page that has a window page, or kNone.
  int32_t of_page(int32_t page) const {
    return is_needed() ? windows_of_pages_[static_cast<size_t>(page)] : kNone;
  }
  int32_t page_of(int32_t window) const { return pages_of_windows_[static_cast<size_t>(window)]; }
  // Whether it has one with its content, for any sequence.
  bool is_filled(int32_t page) const;

  // The page that loses its window page to the next one that takes one; kNone: none does.
  int32_t next_to_lose() const;
  // Gives `page`, which has none, a window page with one use; next_to_lose() was detached before.
  // `is_loading`: its content is not there before set_filled().
  void take(int32_t page, bool is_loading = false);
  void set_filled(int32_t page);
  void hold(int32_t page);
  void drop(int32_t page, Worth worth);
  // The page holds something else now. It must have no uses, or no window page.
  void detach(int32_t page);
  // `to` has the same content, and gets the window page of `from` with its uses; `to` has none.
  void move(int32_t from, int32_t to);
  bool is_used(int32_t page) const { return uses(of_page(page)) > 0; }
  int unused() const;

 private:
  int32_t& uses(int32_t window) { return uses_[static_cast<size_t>(window)]; }
  int32_t uses(int32_t window) const { return uses_[static_cast<size_t>(window)]; }
  int32_t next() const;
  void remove_unused(int32_t window);

  int reach_;
  std::vector<int32_t> windows_of_pages_;  // (pages)
  std::vector<int32_t> pages_of_windows_;  // (windows)
  std::vector<int32_t> uses_;              // (windows)
  std::vector<bool> is_loading_;           // (windows)
  // (worth) the unused ones, by their own numbers; those of no page are the first of all.
  std::array<PageList, 3> unused_;
};

}  // namespace lockstep
