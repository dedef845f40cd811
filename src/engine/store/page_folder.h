// PageFolder: the folder of the page store, for all models and all processes of this machine's
// user:
//
//   <folder>/lock                               who counts or removes holds it; the bytes of all
//   <folder>/<model, 64 hex>/<2 hex>/<page>     engine/store/page_file.h
//
// Together the files stay below the limit of each writing process: room is counted before a page is
// written, and if there is none, the least recently used pages of any model are removed, states
// first while these take more than their share (engine/store/page_sweep.h). A file's modification
// time is the time of its last use. One PageFolder sees files of one kind.
//
// Used by the disk thread of engine/store/page_store.h: every call may wait for the disk.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "engine/store/page_file.h"
#include "engine/store/page_index.h"

namespace lockstep {

struct PageFolderOptions {
  std::filesystem::path folder;
  uint64_t bytes_max = 0;
  Digest model{};
  size_t block_bytes = 0;
  PageFileKind kind = PageFileKind::kPage;
};

class PageFolder {
 public:
  // An error's sentence says why pages cannot be kept there.
  static Result<PageFolder> open(PageFolderOptions options);

  // The files of a bucket, if they may have changed since the last call. Removes leftovers of
  // writers that died.
  std::optional<PageFiles> changed_files(size_t bucket);

  // Makes room and writes. kExhausted: the disk is full, or the page is larger than the limit.
  Status write(const PageKey& key, const PageShape& part, std::span<const std::byte> blocks);
  // Reads what `page` lacks from a file, which counts as used now; a broken file is removed.
  Status read(const PageKey& key, const PageShape& part, PagePart& page);
  // Removes all files of a page.
  void remove(const PageKey& key);

  // For all models, as last counted.
  uint64_t bytes() const { return bytes_; }
  // Whether files were removed to make room since the last call.
  bool has_evicted() { return std::exchange(has_evicted_, false); }

 private:
  struct Seen {
    int64_t changed_ns = -1;  // the folder's modification time; -1: it does not exist
    bool is_settled = true;   // false: it may change again within the same tick of its clock
  };

  PageFolder(PageFolderOptions options, std::filesystem::path model_folder, UniqueFd lock)
      : options_(std::move(options)), model_(std::move(model_folder)), lock_(std::move(lock)) {}

  std::filesystem::path bucket_folder(size_t bucket) const;
  std::filesystem::path path_of(const PageKey& key, const PageShape& part) const;
  PageFiles list(size_t bucket) const;
  Status write_new(const PageKey& key, const PageShape& part, std::span<const std::byte> blocks);
  void remove_file(const std::filesystem::path& path);
  // Counts `bytes` more, after making room for them.
  Status take_room(uint64_t bytes);
  uint64_t file_bytes_max() const;
  void give_back(uint64_t bytes);

  PageFolderOptions options_;
  std::filesystem::path model_;
  UniqueFd lock_;
  std::array<Seen, kPageBuckets> seen_{};
  uint64_t bytes_ = 0;
  bool has_evicted_ = false;
};

}  // namespace lockstep
