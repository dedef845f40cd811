// FileHashes: SHA-256 of local files, cached by path, length and modification time, since hashing
// many GB takes minutes. The cache is a file, so a restarted node need not read them again. A
// change that keeps the time goes unnoticed here; the receiver of the file checks the hash. Any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"

namespace lockstep {

// Changes when the file does.
struct FileStamp {
  uint64_t size = 0;
  int64_t changed_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

// kNotFound; kInvalidArgument if it is not a regular file.
Result<FileStamp> stamp_of(const std::filesystem::path& path);

class FileHashes {
 public:
  static constexpr size_t kFilesMax = 20'000;  // beyond: some are evicted

  // `remembered`: the cache file, in a folder that need not exist yet.
  explicit FileHashes(std::filesystem::path remembered);

  // Hexadecimal. Reads the file if its hash is not cached. kCancelled, or as stamp_of().
  Result<std::string> sha256_of(const std::filesystem::path& path,
                                const std::atomic<bool>* cancelled);

 private:
  struct Known {
    FileStamp stamp;
    std::string hash;
  };
  void remember_locked();

  const std::filesystem::path remembered_;
  std::mutex mutex_;  // guards the map
  std::map<std::string, Known> known_;
};

}  // namespace lockstep
