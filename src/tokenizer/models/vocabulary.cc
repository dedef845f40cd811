#include "tokenizer/models/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/text_hash.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kVocabularyPart = "vocabulary";
constexpr int32_t kFree = -1;
constexpr size_t kSlotsMin = 64;
constexpr size_t kTokenBytesMax = 1 << 20;
constexpr size_t kTokenBytesUsual = 8;

}  // namespace

Vocabulary::Vocabulary(size_t token_count) {
  const size_t count = std::min<size_t>(token_count, kTokenIdMax);
  characters_.reserve(count * kTokenBytesUsual);
  entries_.reserve(count);
  grow_slots(std::bit_ceil(std::max(kSlotsMin, count * 2)));
}

Status Vocabulary::add(std::string_view text, int64_t id) {
  if (id < 0 || id > kTokenIdMax) {
    return corrupt_part(kVocabularyPart, "has the id " + std::to_string(id) +
                                             ", which is outside 0 to " +
                                             std::to_string(kTokenIdMax));
  }
  if (text.size() > kTokenBytesMax) {
    return corrupt_part(kVocabularyPart,
                        "has a token of " + std::to_string(text.size()) + " bytes");
  }
  const auto index = static_cast<size_t>(id);
  if (index >= entries_.size()) entries_.resize(index + 1);
  Entry& entry = entries_[index];
  if (entry.exists)
    return corrupt_part(kVocabularyPart, "has the id " + std::to_string(id) + " twice");
  entry = {characters_.size(), static_cast<uint32_t>(text.size()), true, false};
  characters_ += text;
  if ((used_slot_count_ + 1) * 2 > slots_.size()) {
    grow_slots(std::max(kSlotsMin, slots_.size() * 2));
  }
  int32_t& slot = slots_[slot_of(text)];
  if (slot == kFree) {
    slot = static_cast<int32_t>(id);
    ++used_slot_count_;
  }
  return Ok{};
}

void Vocabulary::hide(int32_t id) {
  entries_[static_cast<size_t>(id)].is_hidden = true;
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  const auto id = find_any(text);
  return id && is_hidden(*id) ? std::nullopt : id;
}

std::optional<int32_t> Vocabulary::find_any(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const int32_t id = slots_[slot_of(text)];
  return id == kFree ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> Vocabulary::text(int32_t id) const {
  const bool is_inside = id >= 0 && static_cast<size_t>(id) < entries_.size();
  if (!is_inside || !entries_[static_cast<size_t>(id)].exists) return std::nullopt;
  return text_of(entries_[static_cast<size_t>(id)]);
}

// The slot that holds `text`, or the free one where it belongs.
size_t Vocabulary::slot_of(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t index = TextHash()(text) & mask;
  while (slots_[index] != kFree && text_of(entries_[static_cast<size_t>(slots_[index])]) != text) {
    index = (index + 1) & mask;
  }
  return index;
}

void Vocabulary::grow_slots(size_t slot_count) {
  const std::vector<int32_t> old = std::move(slots_);
  slots_.assign(slot_count, kFree);
  for (const int32_t id : old) {
    if (id != kFree) slots_[slot_of(text_of(entries_[static_cast<size_t>(id)]))] = id;
  }
}

}  // namespace lockstep
