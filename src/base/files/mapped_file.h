// MappedFile: a whole file as read-only memory. Pages are read when touched. Immutable, any thread
// may read. If the file is shortened meanwhile, a later touch fails with SIGBUS: model files are
// replaced, not rewritten.
//
// If only pieces of a file are here (base/files/piece_journal.h) the holes are known: readers must
// call check_here() first; otherwise they get SIGSEGV, never zeros. While the file is mapped, none
// of its pieces is dropped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/piece_journal.h"
#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

class MappedFile {
 public:
  // kNotFound, kInvalidArgument (a folder, a device) or kInternal (no permission); the sentence
  // names the path.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Byte ranges that are not here; empty for a whole file.
  std::span<const ByteRange> missing() const { return missing_; }
  // For a file in pieces: closes everything but these ranges, and allows pieces to be dropped
  // again. For readers that are done and keep views only for their sizes.
  Status keep_only(std::vector<ByteRange> ranges);
  bool is_in_pieces() const { return lock_.is_open(); }
  // The range of this file that `bytes` are; empty for bytes outside.
  std::optional<ByteRange> place_of(std::span<const std::byte> bytes) const;
  // kNotFound, with the file and the range, if some of these bytes are not here. Ignores bytes
  // outside this file.
  Status check_here(std::span<const std::byte> bytes) const;

 private:
  MappedFile(std::filesystem::path path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  Status lock_pieces(UniqueFd fd);
  Status close_holes();
  void unmap();

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  std::vector<ByteRange> missing_;
  UniqueFd lock_;  // for a file with holes: prevents its pieces from being dropped
};

// The limit for a model's small files that are read whole: configs, templates. The largest known
// have a few MB.
inline constexpr size_t kSmallFileBytesMax = size_t{16} << 20;

// A copy of a whole file. Errors of MappedFile::open(); kUnsupported, with the path and its size,
// beyond `bytes_max`.
Result<std::string> read_small_file(const std::filesystem::path& path,
                                    size_t bytes_max = kSmallFileBytesMax);

// Reads of a mapped file's `bytes` will be short and scattered: nothing around them is read.
void expect_scattered_reads(std::span<const std::byte> bytes);
// The system begins to read `bytes` of a mapped file; does not wait for them.
void read_ahead(std::span<const std::byte> bytes);

// Returns the pages that are wholly inside `bytes` of a mapped file to the system; they are read
// again when touched again. Any thread, even while others read.
void release_pages(std::span<const std::byte> bytes);

}  // namespace lockstep
