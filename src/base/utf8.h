// UTF-8: checking, repairing and cutting text that comes from outside or from a model. Invalid
// bytes are replaced as the Unicode standard (section 3.9, "maximal subparts") and Python's
// errors="replace" do it. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8State {
  kValid,
  kInvalid,     // no continuation can make a character of it
  kIncomplete,  // the text ends inside a character that is right so far
};

// The first character of a text: how it is, and how many bytes belong to it. For kInvalid that is
// the maximal subpart, which one U+FFFD replaces.
struct Utf8Character {
  Utf8State state;
  size_t bytes;
  uint32_t code_point;  // of a valid character
};

// `text` must not be empty.
Utf8Character first_utf8_character(std::string_view text);

bool is_valid_utf8(std::string_view text);
// Each maximal invalid subpart becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);
// Appends a character; `code_point` must be at most U+10FFFF.
void append_code_point(std::string& text, uint32_t code_point);
// The bytes at the end of `text`, 0 to 3, that are the beginning of a character.
size_t incomplete_utf8_tail(std::string_view text);

}  // namespace lockstep
