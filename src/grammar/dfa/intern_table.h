// A hash table of indices into its user's arrays, which gives equal contents one index. Used by
// GrammarAutomaton. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

inline uint64_t mixed_hash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

class InternTable {
 public:
  // The index for which equal(index) holds, or the result of add().
  template <class Equal, class Add>
  uint32_t intern(uint64_t hash, Equal&& equal, Add&& add) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t at = place(hash);
    for (; slots_[at].index != kFree; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag == tag && equal(slots_[at].index)) return slots_[at].index;
    }
    const uint32_t index = add();
    slots_[at] = {hash, index, tag};
    ++count_;
    return index;
  }

  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    uint64_t hash = 0;
    uint32_t index = kFree;
    uint32_t tag = 0;
  };

  size_t place(uint64_t hash) const {
    return static_cast<size_t>(hash ^ (hash >> 17)) & (slots_.size() - 1);
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index == kFree) continue;
      size_t at = place(slot.hash);
      while (slots_[at].index != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace lockstep
