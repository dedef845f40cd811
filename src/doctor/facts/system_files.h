// SystemFiles: small files of /sys, /proc and /etc, under a root that tests set to their own
// folder. Missing and unreadable files are nullopt. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

class SystemFiles {
 public:
  static constexpr size_t kFileBytesMax = size_t{1} << 20;
  static constexpr size_t kEntriesMax = 4096;

  explicit SystemFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // Without surrounding spaces and line ends. `path` as on the machine: "/proc/meminfo".
  std::optional<std::string> text(const std::string& path) const;
  std::optional<int64_t> number(const std::string& path) const;
  bool exists(const std::string& path) const;
  // The names in a folder that begin with `prefix`, sorted.
  std::vector<std::string> names(const std::string& folder, const std::string& prefix = "") const;

 private:
  std::filesystem::path root_;
};

}  // namespace lockstep
