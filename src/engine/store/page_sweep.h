// Counts the page store's folder, for all models, and makes room there by removing the least
// recently used files. The caller holds the folder's lock. Functions over files.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace lockstep {

// Approximately the disk space of a file of this size.
constexpr uint64_t disk_bytes(uint64_t file_bytes) {
  constexpr uint64_t kBlock = 4096;
  return (file_bytes + kBlock - 1) / kBlock * kBlock;
}

// States of recurrent layers are much larger than pages, and every turn of a conversation leaves
// some, of which the next one needs the last: they may take this part of a full folder.
constexpr uint64_t states_bytes_max(uint64_t folder_bytes_max) {
  return folder_bytes_max / 2;
}

// Files counted at a time; if there are more, the folder counts as full.
inline constexpr size_t kSweptFilesMax = size_t{1} << 21;

struct PageSweep {
  uint64_t bytes = 0;    // of the remaining files
  uint64_t removed = 0;  // files
};

// Counts, and if the total exceeds `bytes_max`, removes pages and states until at most
// `bytes_after` are left: states first while they take more than their share of that. Files that
// are neither are never touched.
PageSweep sweep_pages(const std::filesystem::path& folder, uint64_t bytes_max,
                      uint64_t bytes_after);

// Removes a file if the process that was writing it has ended. New files are left alone: a writer
// locks its file shortly after making it.
inline constexpr std::chrono::seconds kLeftOverAgeMin{10};
void remove_if_left_over(const std::filesystem::path& path);

}  // namespace lockstep
