// PageStore: pages of sequence state on this machine's disk, found by their tokens, so that a text
// whose beginning was computed before is not computed again by a later process, another cut of the
// model or another placement. Files are independent of ranks (engine/store/page_file.h): a rank
// reads its blocks from all existing files of a page.
//
// A store keeps files of one kind: pages, or states of recurrent layers, each found by the key of
// the page where it ends. All that is said of pages below holds for states too.
//
// Only a cache: on any failure a page counts as missing and is computed. Broken files are removed,
// least recently used ones too when the folder is full, and a disk that hangs or refuses turns the
// store off.
//
// Used by a rank's engine, from its one thread. An internal thread does all disk access; only
// load() and flush() wait for it, with a deadline, and the destructor briefly. All memory is
// bounded: pages wait for the disk in page_staging_bytes(), states in state_staging_bytes(), and
// the index has kPageFilesMax entries. It does not decide what is saved, loaded or kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/crypto/secrets.h"
#include "base/result.h"
#include "engine/store/page_file.h"
#include "engine/store/page_store_counts.h"
#include "model/load/page_shape.h"

namespace lockstep {

using PageKey = Digest;  // SHA-256

// For a page's kPagePositions tokens and all pages before it: `before` is the key of the previous
// page, all zero for the first one.
PageKey page_key(const PageKey& before, std::span<const int32_t> tokens);

// Files of one model that are known at a time; any beyond these are ignored until they are the
// least recently used and are removed.
inline constexpr size_t kPageFilesMax = size_t{1} << 18;

struct PageStoreOptions {
  std::filesystem::path folder;  // for all models of this machine's user; made (0700) if missing
  uint64_t bytes_max = 0;        // for all its content, of all models and processes
  Digest model{};                // model_identity() of engine/run/model_identity.h
  PageShape shape;               // this rank's part of a page
  PageFileKind kind = PageFileKind::kPage;
  // Called by the disk thread when has_room() may have become true, or pages written by other
  // processes have been found. Must be short and not call the store.
  std::function<void()> on_saved;
};

class PageStore {
 public:
  // Makes the folder and indexes its content; if that takes longer than some seconds, pages appear
  // as it proceeds. An error says why there can be no store: the folder cannot be made or written,
  // or is another user's.
  static Result<std::unique_ptr<PageStore>> open(PageStoreOptions options);
  // Drops pages that wait to be written: call flush() first.
  ~PageStore();
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  size_t page_bytes() const;

  // Whether this rank's whole part can be read, or waits to be written. Does not touch the disk. A
  // page that another process has just written is found some time after it was asked for.
  bool contains(const PageKey& key) const;

  // Whether save() would take a page.
  bool has_room() const;
  // The buffer for the next page: page_bytes() in the order (layers, heads, keys and values of a
  // block), or empty if there is no room. The same memory until save() is called.
  std::optional<std::span<std::byte>> begin_save();
  // Passes the buffer from begin_save() to the disk thread.
  void save(const PageKey& key);
  // Waits until all saved pages are written: kTimeout if they are not by then.
  Status flush(std::chrono::milliseconds deadline);

  // Reads this rank's part. kNotFound (missing, or removed meanwhile), kCorrupt (broken, and
  // removed), kTimeout (the disk hangs: the store is off until begin_epoch()) or kInternal (the
  // disk's refusal); on an error `page` is undefined, and the page is forgotten.
  Status load(const PageKey& key, std::span<std::byte> page, std::chrono::milliseconds deadline);
  // The page is useless: its files are removed.
  void forget(const PageKey& key);

  // A new group was formed: a store that is off because the disk hung tries again, if the disk has
  // answered since.
  void begin_epoch();

  using Counts = PageStoreCounts;
  Counts counts() const;  // any thread

 private:
  struct Shared;
  explicit PageStore(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // the disk thread outlives the store if the disk hangs
};

}  // namespace lockstep
