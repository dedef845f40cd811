#include "device/gpu/hazards.h"

#include <algorithm>

namespace lockstep::gpu {
namespace {

bool overlap(std::initializer_list<MemoryRange> some, const std::vector<MemoryRange>& others) {
  return std::any_of(some.begin(), some.end(), [&](const MemoryRange& range) {
    return std::any_of(others.begin(), others.end(),
                       [&](const MemoryRange& other) { return range.overlaps(other); });
  });
}

}  // namespace

bool Hazards::add(std::initializer_list<MemoryRange> reads,
                  std::initializer_list<MemoryRange> writes) {
  const bool is_full = read_.size() + written_.size() + reads.size() + writes.size() > kRangesMax;
  const bool waits = must_wait_ || is_full || overlap(reads, written_) ||
                     overlap(writes, written_) || overlap(writes, read_);
  if (waits) {
    read_.clear();
    written_.clear();
  }
  must_wait_ = false;
  read_.insert(read_.end(), reads);
  written_.insert(written_.end(), writes);
  return waits;
}

}  // namespace lockstep::gpu
