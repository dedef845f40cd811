// What this process holds, from /proc (Linux): descriptors, threads, children, shared memory,
// resident memory.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep {

struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int children = 0;
  int shared_segments = 0;  // named ones of the whole machine; ours have no names
  int64_t resident_kib = 0;
};

inline int count_entries(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

inline Holdings holdings() {
  Holdings held;
  held.descriptors = count_entries("/proc/self/fd");
  held.threads = count_entries("/proc/self/task");
  held.shared_segments = count_entries("/dev/shm");
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) ++held.children;
  }
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> held.resident_kib;
  }
  return held;
}

inline void check_unchanged(const Holdings& before, const Holdings& after) {
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.children == 0);
  CHECK(after.shared_segments <= before.shared_segments);
  MESSAGE("resident: " << before.resident_kib << " KiB before, " << after.resident_kib
                       << " KiB after");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(after.resident_kib < before.resident_kib + 1024);
#endif
}

}  // namespace lockstep
