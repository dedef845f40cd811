// FileHashes: the SHA-256 of files of this machine, remembered by path, length and time of change,
// since reading a model of many GB takes minutes. Remembered in a file, so that a node that starts
// again need not read them again. What the disk changes without a new time is not noticed here, but
// by who gets the file and checks it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"

namespace lockstep {

// What tells that a file was changed.
struct FileStamp {
  uint64_t size = 0;
  int64_t changed_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

// kNotFound; kInvalidArgument for what is no regular file.
Result<FileStamp> stamp_of(const std::filesystem::path& path);

class FileHashes {
 public:
  static constexpr size_t kFilesMax = 20'000;  // beyond: some are forgotten

  // `remembered`: the file, in a folder that need not exist yet.
  explicit FileHashes(std::filesystem::path remembered);

  // Hexadecimal. Reads the file where it is not known. kCancelled, or as stamp_of().
  Result<std::string> sha256_of(const std::filesystem::path& path,
                                const std::atomic<bool>* cancelled);

 private:
  struct Known {
    FileStamp stamp;
    std::string hash;
  };
  void remember_locked();

  const std::filesystem::path remembered_;
  std::mutex mutex_;  // of the map
  std::map<std::string, Known> known_;
};

}  // namespace lockstep
