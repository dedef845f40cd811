#include "tokenizer/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Characters that are their own NFC and never compose with the one before them: Latin, Cyrillic,
// punctuation, kana, Han, Hangul, emoji. A text of only these stays unchanged.
constexpr Range kStableNfc[] = {
    {0, 0x2FF},       {0x400, 0x482},   {0x2010, 0x2027}, {0x3041, 0x3096},
    {0x30A1, 0x30FA}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0x1F300, 0x1F64F},
};

bool is_stable_nfc(std::string_view text) {
  while (!text.empty()) {
    if (static_cast<uint8_t>(text[0]) < 0x80) {
      text.remove_prefix(1);
      continue;
    }
    const Utf8Character character = first_utf8_character(text);
    const bool is_stable =
        std::any_of(std::begin(kStableNfc), std::end(kStableNfc), [&](Range range) {
          return character.code_point >= range.first && character.code_point <= range.last;
        });
    if (!is_stable) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

utf8proc_category_t category_of(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

int combining_class(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

// Sorts the marks after each letter by class. utf8proc_decompose() would swap neighbours, which is
// quadratic for a text of only marks.
void order_marks(std::vector<utf8proc_int32_t>& characters) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  for (auto at = characters.begin(); at != characters.end();) {
    const auto begin = std::find_if(at, characters.end(), is_mark);
    at = std::find_if_not(begin, characters.end(), is_mark);
    if (at - begin > 1) {
      std::stable_sort(begin, at, [](utf8proc_int32_t a, utf8proc_int32_t b) {
        return combining_class(a) < combining_class(b);
      });
    }
  }
}

std::vector<utf8proc_int32_t> decomposed(std::string_view text, utf8proc_option_t options) {
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size() + 1);
  std::array<utf8proc_int32_t, 32> parts;  // Unicode's longest, of U+FDFA, has 18
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code_point), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), options, nullptr);
    LOCKSTEP_CHECK(count >= 0 && static_cast<size_t>(count) <= parts.size());
    characters.insert(characters.end(), parts.begin(), parts.begin() + count);
    text.remove_prefix(character.bytes);
  }
  order_marks(characters);
  return characters;
}

}  // namespace

std::string normalize_unicode(std::string_view text, NormalForm form) {
  if (form == NormalForm::kNfc && is_stable_nfc(text)) return std::string(text);
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> characters = decomposed(text, options);
  const auto count = static_cast<utf8proc_ssize_t>(characters.size());
  characters.push_back(0);  // for the terminator that reencode writes; its result is never longer
  const auto written = utf8proc_reencode(characters.data(), count, options);
  LOCKSTEP_CHECK(written >= 0);
  return {reinterpret_cast<const char*>(characters.data()), static_cast<size_t>(written)};
}

std::string lowercase(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code_point));
    append_code_point(result, static_cast<uint32_t>(lower));
    if (character.code_point == 0x130) append_code_point(result, 0x307);  // two code points
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string_view unicode_category(uint32_t code_point) {
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_nonspacing_mark(uint32_t code_point) {
  return category_of(code_point) == UTF8PROC_CATEGORY_MN;
}

bool is_other(uint32_t code_point) {
  const auto category = category_of(code_point);
  return category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_CC;
}

bool is_word_character(uint32_t code_point) {
  const auto category = category_of(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_PC;
}

size_t leading_white_space(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(bytes));
    if (!is_white_space(character.code_point)) break;
    bytes += character.bytes;
  }
  return bytes;
}

size_t trailing_white_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t previous = begin - 1;
    while (previous > 0 && (static_cast<uint8_t>(text[previous]) & 0xC0) == 0x80) --previous;
    if (!is_white_space(first_utf8_character(text.substr(previous)).code_point)) break;
    begin = previous;
  }
  return text.size() - begin;
}

}  // namespace lockstep
