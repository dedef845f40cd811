#include "chat/text/characters.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/utf8.h"
#include "chat/text/character_tables.h"

namespace lockstep {
namespace {

// Shorter needles use the C library's search, which is fast though not linear.
constexpr size_t kShortNeedleBytes = 32;

template <size_t N>
uint32_t change_case(const CaseRange (&ranges)[N], uint32_t code_point) {
  const auto* range = std::upper_bound(
      std::begin(ranges), std::end(ranges), code_point,
      [](uint32_t value, const CaseRange& candidate) { return value < candidate.first; });
  // Ranges of step 2 may interleave: "first, last, 2" and "first + 1, ...".
  for (int look_back = 0; look_back < 2 && range != std::begin(ranges); ++look_back) {
    --range;
    if (code_point <= range->last && (code_point - range->first) % range->step == 0) {
      return static_cast<uint32_t>(static_cast<int32_t>(code_point) + range->difference);
    }
  }
  return code_point;
}

template <size_t N>
const char* special_case(const SpecialCase (&table)[N], uint32_t code_point) {
  const auto* entry = std::lower_bound(
      std::begin(table), std::end(table), code_point,
      [](const SpecialCase& candidate, uint32_t value) { return candidate.code_point < value; });
  return entry != std::end(table) && entry->code_point == code_point ? entry->text : nullptr;
}

void append_with_case(std::string& out, uint32_t code_point, LetterCase letter_case) {
  if (code_point < 0x80) {
    const bool upper = letter_case == LetterCase::kUpper;
    const bool changes =
        upper ? code_point >= 'a' && code_point <= 'z' : code_point >= 'A' && code_point <= 'Z';
    out += static_cast<char>(changes ? code_point ^ 0x20 : code_point);
    return;
  }
  const bool upper = letter_case == LetterCase::kUpper;
  const char* special =
      upper ? special_case(kSpecialUppers, code_point) : special_case(kSpecialLowers, code_point);
  if (special) {
    out += special;
  } else {
    append_code_point(
        out, upper ? change_case(kUpperRanges, code_point) : change_case(kLowerRanges, code_point));
  }
}

size_t previous_start(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

template <class Strips>
MarkedText strip_where(const MarkedText& text, Sides sides, Strips strips) {
  const std::string_view bytes = text.text();
  size_t begin = 0;
  size_t end = bytes.size();
  while (sides != Sides::kRight && begin < end) {
    const Utf8Character first = first_utf8_character(bytes.substr(begin));
    if (!strips(first.code_point, bytes.substr(begin, first.bytes))) break;
    begin += first.bytes;
  }
  while (sides != Sides::kLeft && begin < end) {
    const size_t last = previous_start(bytes, end);
    const Utf8Character character = first_utf8_character(bytes.substr(last));
    if (!strips(character.code_point, bytes.substr(last, character.bytes))) break;
    end = last;
  }
  return text.part(begin, end - begin);
}

// Knuth, Morris and Pratt: for each prefix of `wanted` the longest border.
size_t find_long(std::string_view text, std::string_view wanted, size_t from) {
  std::vector<size_t> border(wanted.size() + 1, 0);
  for (size_t i = 1, matched = 0; i < wanted.size(); ++i) {
    while (matched > 0 && wanted[i] != wanted[matched]) matched = border[matched];
    if (wanted[i] == wanted[matched]) ++matched;
    border[i + 1] = matched;
  }
  for (size_t i = from, matched = 0; i < text.size(); ++i) {
    while (matched > 0 && text[i] != wanted[matched]) matched = border[matched];
    if (text[i] == wanted[matched]) ++matched;
    if (matched == wanted.size()) return i + 1 - matched;
  }
  return std::string_view::npos;
}

template <size_t kCount>
bool is_among(const CodePointRange (&ranges)[kCount], uint32_t code_point) {
  const auto* range = std::upper_bound(
      std::begin(ranges), std::end(ranges), code_point,
      [](uint32_t value, const CodePointRange& candidate) { return value < candidate.first; });
  return range != std::begin(ranges) && code_point <= (range - 1)->last;
}

}  // namespace

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t code_point_offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && index-- == 0) return at;
  }
  return at;
}

bool is_python_space(uint32_t code_point) {
  return (code_point >= 0x09 && code_point <= 0x0D) || (code_point >= 0x1C && code_point <= 0x20) ||
         code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

bool is_python_printable(uint32_t code_point) {
  return !is_among(kUnprintable, code_point);
}

bool is_python_word(uint32_t code_point) {
  return is_among(kWordCharacters, code_point);
}

MarkedText with_case(const MarkedText& text, LetterCase letter_case) {
  MarkedText result;
  for (const PromptPiece& piece : text.pieces()) {
    std::string changed;
    for (size_t at = 0; at < piece.text.size();) {
      const auto character = first_utf8_character(std::string_view(piece.text).substr(at));
      append_with_case(changed, character.code_point, letter_case);
      at += character.bytes;
    }
    result.append(changed, piece.is_from_input);
  }
  return result;
}

MarkedText capitalized(const MarkedText& text) {
  const size_t first = code_point_offset(text.text(), 1);
  MarkedText result = with_case(text.part(0, first), LetterCase::kUpper);
  result.append(with_case(text.part(first, text.size() - first), LetterCase::kLower));
  return result;
}

MarkedText stripped(const MarkedText& text, Sides sides) {
  return strip_where(text, sides, [](uint32_t code_point, std::string_view) {
    return is_python_space(code_point);
  });
}

MarkedText stripped(const MarkedText& text, Sides sides, std::string_view characters) {
  return strip_where(text, sides, [characters](uint32_t, std::string_view character) {
    return characters.find(character) != std::string_view::npos;
  });
}

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (wanted.size() <= kShortNeedleBytes) return text.find(wanted, from);
  return find_long(text, wanted, from);
}

}  // namespace lockstep
