// MappedFile: a whole file as read-only memory. Pages are read when they are touched. Immutable,
// any thread may read. Who shortens the file meanwhile makes a later touch fail with SIGBUS: model
// files are replaced, not rewritten.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

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

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void unmap();

  std::span<const std::byte> bytes_;
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
