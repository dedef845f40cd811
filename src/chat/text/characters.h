// Characters the way Python's str sees them: counting, cutting, case, white space, printability.
// For the template interpreter. `text` is valid UTF-8 throughout. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chat/text/marked_text.h"

namespace lockstep {

size_t count_code_points(std::string_view text);
// The byte at which code point `index` begins; the size of the text if past its end.
size_t code_point_offset(std::string_view text, size_t index);

bool is_python_space(uint32_t code_point);
bool is_python_printable(uint32_t code_point);
bool is_python_word(uint32_t code_point);  // \w of its regular expressions

enum class LetterCase { kUpper, kLower };
// Each character keeps its mark, even when it becomes two ("ß" -> "SS").
MarkedText with_case(const MarkedText& text, LetterCase letter_case);
MarkedText capitalized(const MarkedText& text);

enum class Sides { kLeft, kRight, kBoth };
// Without white space, or the characters of `characters`, at the ends.
MarkedText stripped(const MarkedText& text, Sides sides);
MarkedText stripped(const MarkedText& text, Sides sides, std::string_view characters);

// Python's str.find in bytes, linear in the sum of both sizes; npos if absent.
size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0);

}  // namespace lockstep
