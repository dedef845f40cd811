// UTF-8: checks, repairs and cuts text from outside or from a model. Invalid bytes are replaced
// like in the Unicode standard (section 3.9, "maximal subparts") and in Python's errors="replace".
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8State {
  kValid,
  kInvalid,     // no continuation makes it a character
  kIncomplete,  // the text ends inside a character that is valid so far
};

// The first character of a text: its state and number of bytes. For kInvalid these are the maximal
// subpart, which one U+FFFD replaces.
struct Utf8Character {
  Utf8State state;
  size_t bytes;
  uint32_t code_point;  // of a valid character
};

// `text` must not be empty.
Utf8Character first_utf8_character(std::string_view text);

bool is_valid_utf8(std::string_view text);
// Whether the byte is not the first one of a character.
constexpr bool is_utf8_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}
// Each maximal invalid subpart becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);
// Appends a character; `code_point` must be at most U+10FFFF.
void append_code_point(std::string& text, uint32_t code_point);
// The number of bytes, 0 to 3, at the end of `text` that begin an incomplete character.
size_t incomplete_utf8_tail(std::string_view text);

}  // namespace lockstep
