#include "tokenizer/text/charsmap.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kCharsmapPart = "charsmap";
constexpr size_t kUnitBytes = 4;
// The factor by which one replacement may be longer than its match: a text must not become
// gigabytes. The largest in Unicode's NFKC is 11, for U+FDFA.
constexpr size_t kCharsmapGrowthMax = 32;
// The longest match examined: an untrusted trie may have cycles. The longest in Unicode's NFKC has
// 12 bytes.
constexpr size_t kMatchBytesMax = 128;

uint32_t unit_at(std::string_view bytes, size_t offset) {
  uint32_t unit = 0;
  for (size_t i = 0; i < kUnitBytes; ++i) {
    unit |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[offset + i])) << 8 * i;
  }
  return unit;
}

bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label_of(uint32_t unit) {
  return unit & (1u << 31 | 0xFF);
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit & 1u << 9) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  if (bytes.size() > kCharsmapBytesMax) return unsupported_part(kCharsmapPart, "of this size");
  if (bytes.size() < kUnitBytes) return corrupt_part(kCharsmapPart, "is too short");
  const size_t trie_bytes = unit_at(bytes, 0);
  if (trie_bytes > bytes.size() - kUnitBytes || trie_bytes % kUnitBytes != 0 || trie_bytes == 0) {
    return corrupt_part(kCharsmapPart, "has a trie of " + std::to_string(trie_bytes) + " bytes");
  }
  Charsmap result;
  for (size_t offset = 0; offset < trie_bytes; offset += kUnitBytes) {
    result.units_.push_back(unit_at(bytes, kUnitBytes + offset));
  }
  result.replacements_ = bytes.substr(kUnitBytes + trie_bytes);
  if (!result.replacements_.ends_with('\0'))
    return corrupt_part(kCharsmapPart, "has no last replacement");
  if (!is_valid_utf8(result.replacements_)) return corrupt_part(kCharsmapPart, "is not UTF-8");
  return result;
}

std::string Charsmap::apply(std::string_view text, size_t bytes_max) const {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Found found = longest_at(text);
    const std::string_view replacement = replacement_of(found);
    if (found.bytes > 0 && result.size() + replacement.size() + text.size() <= bytes_max) {
      result += replacement;
      text.remove_prefix(found.bytes);
    } else {
      const size_t bytes = first_utf8_character(text).bytes;
      result += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return is_valid_utf8(result) ? result : replace_invalid_utf8(result);
}

std::string_view Charsmap::replacement_of(const Found& found) const {
  const auto written =
      std::string_view(replacements_).substr(found.replacement, found.bytes * kCharsmapGrowthMax);
  return written.substr(0, written.find('\0'));
}

Charsmap::Found Charsmap::longest_at(std::string_view text) const {
  Found found;
  size_t node = offset_of(units_[0]);
  for (size_t i = 0; i < std::min(text.size(), kMatchBytesMax); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const size_t replacement = value_of(units_[node]);
    const bool ends_character = i + 1 == text.size() || (text[i + 1] & 0xC0) != 0x80;
    if (replacement < replacements_.size() && ends_character) found = {i + 1, replacement};
  }
  return found;
}

}  // namespace lockstep
