// Counts the page store's folder, for all models, and makes room there by removing the least
// recently used files. The caller holds the folder's lock. Functions over files.
#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep {

// Approximately the disk space of a file of this size.
constexpr uint64_t disk_bytes(uint64_t file_bytes) {
  constexpr uint64_t kBlock = 4096;
  return (file_bytes + kBlock - 1) / kBlock * kBlock;
}

// Files counted at a time; if there are more, the folder counts as full.
inline constexpr size_t kSweptFilesMax = size_t{1} << 21;

struct PageSweep {
  uint64_t bytes = 0;    // of the remaining files
  uint64_t removed = 0;  // files
};

// Counts, and if the total exceeds `bytes_max`, removes pages until at most `bytes_after` are left.
// Files that are not pages are never touched.
PageSweep sweep_pages(const std::filesystem::path& folder, uint64_t bytes_max,
                      uint64_t bytes_after);

// Removes a file if the process that was writing it has ended.
void remove_if_left_over(const std::filesystem::path& path);

}  // namespace lockstep
