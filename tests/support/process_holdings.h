// The resources of a process, from /proc (Linux): descriptors, threads, children, shared memory,
// maps, private memory.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace lockstep {

struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int children = 0;
  int shared_segments = 0;  // named ones on the whole machine; ours have no names
  int shared_maps = 0;      // links of shared memory
  int named_maps = 0;       // of files, devices and shared memory
  int64_t private_kib = 0;  // resident memory without a name: heap, stacks, buffers
};

inline int count_entries(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Maps without a name belong to the allocator and the stacks, and the kernel merges neighbours:
// their number means nothing.
inline int count_maps(const std::string& process, std::string_view name) {
  std::ifstream maps(process + "/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find_first_of("/[") != line.npos && line.find(name) != line.npos) ++count;
  }
  return count;
}

// For a folder like /proc/self.
inline Holdings holdings_in(const std::string& process) {
  Holdings held;
  held.descriptors = count_entries(process + "/fd");
  held.threads = count_entries(process + "/task");
  held.shared_segments = count_entries("/dev/shm");
  held.shared_maps = count_maps(process, "memfd:lockstep");
  held.named_maps = count_maps(process, "");
  for (const auto& task : std::filesystem::directory_iterator(process + "/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) ++held.children;
  }
  std::ifstream status(process + "/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") status >> held.private_kib;
  }
  return held;
}

inline Holdings holdings() {
  return holdings_in("/proc/self");
}

inline Holdings holdings_of(int64_t pid) {
  return holdings_in("/proc/" + std::to_string(pid));
}

}  // namespace lockstep
