// PageStore: pages of sequence state on this machine's disk, found by their tokens, so that a text
// whose beginning was computed before is not computed again by a later process, by another cut of
// the model or by another placement. Files know nothing of ranks (engine/page_file.h): a rank reads
// its blocks out of all files of a page that are there.
//
// A cache and nothing more: whatever goes wrong with it, a page counts as not there, and is
// computed. Files that are broken are removed, those used longest ago go when the folder is full,
// and a disk that hangs or refuses turns the store off.
//
// Used by a rank's engine, from its one thread. A thread inside does all that touches the disk;
// only load() and flush() wait for it, with a deadline, and the destructor for a moment. Nothing is
// allocated without a limit: pages wait for the disk in page_staging_bytes(), and the index has
// kPageFilesMax entries. It does not decide what is saved, loaded or kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/secrets.h"
#include "engine/page_store_counts.h"
#include "model/page_shape.h"

namespace lockstep {

using PageKey = Digest;  // SHA-256

// Of a page's kPagePositions tokens and all pages before it: `before` is the key of the last of
// them, all zero for the first page.
PageKey page_key(const PageKey& before, std::span<const int32_t> tokens);

// Files of one model that are known at a time; with more of them the rest is as if it were not
// there, until it is the longest unused and goes.
inline constexpr size_t kPageFilesMax = size_t{1} << 18;

struct PageStoreOptions {
  std::filesystem::path folder;  // of all models of this machine's user; made (0700) if missing
  uint64_t bytes_max = 0;        // of all that lies there, of all models and processes
  Digest model{};                // model_identity() of engine/model_identity.h
  PageShape shape;               // this rank's part of a page
  // Called by the thread of the disk when has_room() may have become true, or pages have been
  // found that other processes wrote. Must be short, and call nothing of the store.
  std::function<void()> on_saved;
};

class PageStore {
 public:
  // Makes the folder and reads what is there; where that takes longer than some seconds, pages
  // turn up while it goes on. An error says why there can be no store: the folder cannot be made
  // or written, or is another user's.
  static Result<std::unique_ptr<PageStore>> open(PageStoreOptions options);
  // Pages that wait to be written are given up: flush() comes before.
  ~PageStore();
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  size_t page_bytes() const;

  // This rank's whole part can be read, or waits to be written. Touches no disk. A page that
  // another process has written since is found some time after it was asked for.
  bool contains(const PageKey& key) const;

  // save() would take a page.
  bool has_room() const;
  // Where the bytes of the next page go: page_bytes() in the order (layers, heads, keys and values
  // of a block), or nothing where there is no room. The same memory until save() is called.
  std::optional<std::span<std::byte>> begin_save();
  // Gives what begin_save() lent to the thread of the disk.
  void save(const PageKey& key);
  // Waits until all that was saved is written: kTimeout if it is not by then.
  Status flush(std::chrono::milliseconds deadline);

  // Reads this rank's part. kNotFound (nothing there, or gone meanwhile), kCorrupt (broken, and
  // removed), kTimeout (the disk hangs: the store is off until begin_epoch()) or kInternal (the
  // disk's refusal); `page` holds nothing of use then, and the page is forgotten.
  Status load(const PageKey& key, std::span<std::byte> page, std::chrono::milliseconds deadline);
  // The page is of no use: its files are removed.
  void forget(const PageKey& key);

  // A group was formed anew: a store that was off because the disk hung tries again, if the disk
  // has answered since.
  void begin_epoch();

  using Counts = PageStoreCounts;
  Counts counts() const;  // any thread

 private:
  struct Shared;
  explicit PageStore(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // the disk's thread outlives the store where the disk hangs
};

}  // namespace lockstep
