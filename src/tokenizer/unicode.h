// Unicode's normal forms and categories: the only place that sees utf8proc. Texts are valid UTF-8.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normalize_unicode(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);

// The general category's two letters: "Lu", "Nd", "Zs"; "Cn" for what is unassigned.
std::string_view unicode_category(uint32_t code_point);

// The White_Space property, as Rust's char::is_whitespace has it.
bool is_white_space(uint32_t code_point);
bool is_nonspacing_mark(uint32_t code_point);  // category Mn
bool is_other(uint32_t code_point);            // categories C*: control, format, unassigned...
bool is_word_character(uint32_t code_point);   // what \w matches

// The bytes of white space at the beginning and at the end.
size_t leading_white_space(std::string_view text);
size_t trailing_white_space(std::string_view text);

}  // namespace lockstep
