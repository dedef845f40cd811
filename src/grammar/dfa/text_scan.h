// TextScan: a cursor in a text of code points; the base class of the regex and EBNF parsers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/dfa/limits.h"

namespace lockstep {

class TextScan {
 protected:
  explicit TextScan(std::vector<uint32_t> text) : text_(std::move(text)) {}

  bool more() const { return at_ < text_.size(); }
  bool next_is(char c) const { return more() && text_[at_] == static_cast<uint8_t>(c); }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  // ASCII; takes the whole word or nothing.
  bool take(std::string_view word) {
    if (text_.size() - at_ < word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
      if (text_[at_ + i] != static_cast<uint8_t>(word[i])) return false;
    }
    at_ += word.size();
    return true;
  }
  // Decimal; above kRepetitionMax the value is unspecified but also above it. nullopt without a
  // digit.
  std::optional<uint32_t> take_number() {
    const size_t begin = at_;
    uint32_t value = 0;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value <= kRepetitionMax) value = value * 10 + (text_[at_] - '0');
    }
    return at_ == begin ? std::nullopt : std::optional(value);
  }
  // `count` is at most 8; nullopt if one of them is not a hex digit.
  std::optional<uint32_t> take_hex_digits(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const uint32_t c = more() ? text_[at_] : 0;
      const uint32_t lower = c | 0x20;
      const bool is_letter = lower >= 'a' && lower <= 'f';
      if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
      value = value * 16 + (is_letter ? lower - 'a' + 10 : c - '0');
    }
    return value;
  }

  std::vector<uint32_t> text_;
  size_t at_ = 0;
};

}  // namespace lockstep
