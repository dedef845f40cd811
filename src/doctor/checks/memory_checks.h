// Memory: how much a model can use, a container's limit, huge pages, swapping.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/facts/finding.h"
#include "doctor/facts/system_files.h"

namespace lockstep {

struct MemoryFacts {
  std::optional<uint64_t> total_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t> limit_bytes;  // of a container
  std::optional<uint64_t> swapped_bytes;
  std::string huge_pages;  // "always", "madvise", "never"; empty: the system has no such setting
  bool is_mac = false;
};

MemoryFacts collect_memory(const SystemFiles& files);
Findings judge_memory(const MemoryFacts& facts);

}  // namespace lockstep
