// Vocabulary: token texts and their ids. The texts are as in the file (bytes as "<0x0A>", spaces as
// "\u2581") or, in a byte-level vocabulary, the bytes themselves. Immutable once read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

inline constexpr int32_t kTokenIdMax = (1 << 22) - 1;  // the largest known vocabularies have 2^18

class Vocabulary {
 public:
  Vocabulary() = default;
  // Reserves room for `token_count` tokens.
  explicit Vocabulary(size_t token_count);

  // If two tokens have the same text, the first is found. kCorrupt if the id is already used.
  Status add(std::string_view text, int64_t id);
  // The token can still be printed but not found: text never becomes this token.
  void hide(int32_t id);

  // The largest id + 1; there may be holes.
  int size() const { return static_cast<int>(entries_.size()); }
  std::optional<int32_t> find(std::string_view text) const;
  // Also finds hidden tokens.
  std::optional<int32_t> find_any(std::string_view text) const;
  // Nullopt for an unused id.
  std::optional<std::string_view> text(int32_t id) const;
  bool is_hidden(int32_t id) const { return entries_[static_cast<size_t>(id)].is_hidden; }

 private:
  struct Entry {
    size_t offset = 0;  // in characters_
    uint32_t size = 0;
    bool exists = false;
    bool is_hidden = false;
  };

  std::string_view text_of(const Entry& entry) const {
    return std::string_view(characters_).substr(entry.offset, entry.size);
  }
  size_t slot_of(std::string_view text) const;
  void grow_slots(size_t slot_count);

  std::string characters_;  // of all tokens
  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;  // ids by hash, -1 if free; a power of two, at most half full
  size_t used_slot_count_ = 0;
};

}  // namespace lockstep
