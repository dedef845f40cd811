// What lies in the folder of the store of pages, of all models, and making room there: files used
// longest ago go first. Whoever calls holds the folder's lock. Functions over files.
#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep {

// What a file of so many bytes takes of a disk, near enough.
constexpr uint64_t disk_bytes(uint64_t file_bytes) {
  constexpr uint64_t kBlock = 4096;
  return (file_bytes + kBlock - 1) / kBlock * kBlock;
}

// Files that are counted at a time; where there are more, the folder counts as full.
inline constexpr size_t kSweptFilesMax = size_t{1} << 21;

struct PageSweep {
  uint64_t bytes = 0;    // that are left
  uint64_t removed = 0;  // files
};

// Counts, and where it is more than `bytes_max`, removes pages until at most `bytes_after` are
// left. Of files that are no pages none is touched.
PageSweep sweep_pages(const std::filesystem::path& folder, uint64_t bytes_max,
                      uint64_t bytes_after);

// A file that a writer has left which is no more.
void remove_if_left_over(const std::filesystem::path& path);

}  // namespace lockstep
