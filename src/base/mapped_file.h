// MappedFile: a whole file as read-only memory. Pages are read when they are touched. Immutable,
// any thread may read. Who shortens the file meanwhile makes a later touch fail with SIGBUS: model
// files are replaced, not rewritten.
//
// Of a file of which only pieces are here (base/piece_journal.h) the holes are known: whoever means
// to read asks check_here() first, and who does not meets SIGSEGV, never zeros. As long as it is
// mapped no piece of it is dropped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/piece_journal.h"
#include "base/result.h"
#include "base/unique_fd.h"

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
  // Bytes that are not here; empty for a whole file.
  std::span<const ByteRange> missing() const { return missing_; }
  // Of a file in pieces: closes all but these ranges, and lets pieces be dropped again. For who has
  // read what it wanted and keeps views for their sizes alone.
  Status keep_only(std::vector<ByteRange> ranges);
  bool is_in_pieces() const { return lock_.is_open(); }
  // Where bytes of this file lie in it; nothing for others.
  std::optional<ByteRange> place_of(std::span<const std::byte> bytes) const;
  // kNotFound, with the file and the range, where some of these bytes are not here. Bytes of other
  // places are none of its business.
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
  UniqueFd lock_;  // of a file with holes: keeps its pieces from being dropped
};

// The largest of a model's small files, those that are read whole: configs, templates. The largest
// known have a few MB.
inline constexpr size_t kSmallFileBytesMax = size_t{16} << 20;

// A copy of a whole file. Errors of MappedFile::open(); kUnsupported, with the path and its size,
// beyond `bytes_max`.
Result<std::string> read_small_file(const std::filesystem::path& path,
                                    size_t bytes_max = kSmallFileBytesMax);

// Gives the pages that lie wholly inside `bytes` of a mapped file back to the system; they are read
// again when they are touched again. Any thread, also while others read.
void release_pages(std::span<const std::byte> bytes);

}  // namespace lockstep
