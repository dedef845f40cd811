// Reading a double from text, independent of the locale: std::from_chars, which libc++ (macOS) has
// only for whole numbers.
#pragma once

#include <charconv>

namespace lockstep {

// As std::from_chars(first, last, value) with std::chars_format::general: no space and no plus in
// front, correctly rounded, `ptr` after the number. invalid_argument if there is none,
// result_out_of_range if it is beyond the largest double or rounds to zero; `value` is then what it
// was.
std::from_chars_result double_from_chars(const char* first, const char* last, double& value);

// The same by strtod, as it is where the standard library has no such function. Public for its
// tests.
std::from_chars_result double_from_chars_by_strtod(const char* first, const char* last,
                                                   double& value);

}  // namespace lockstep
