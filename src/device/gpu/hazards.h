// Hazards: which dispatches must wait for earlier ones, because they read what those write or write
// what those use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "device/shaders/params.h"

namespace lockstep::gpu {

// Bytes of the device's memory.
struct MemoryRange {
  Address begin = 0;
  uint64_t bytes = 0;
  bool is_partial = false;  // a dispatch uses only some of it

  bool overlaps(const MemoryRange& other) const {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

class Hazards {
 public:
  // Whether a dispatch that reads and writes these ranges must wait for all before it. If so, later
  // dispatches are compared with those from this one on.
  bool add(std::initializer_list<MemoryRange> reads, std::initializer_list<MemoryRange> writes);
  // The next dispatch waits.
  void wait_for_all() { must_wait_ = true; }

 private:
  // Beyond this many ranges a dispatch waits, which is always right.
  static constexpr size_t kRangesMax = 64;

  std::vector<MemoryRange> read_, written_;
  bool must_wait_ = true;
};

}  // namespace lockstep::gpu
