// Unicode's normal forms and categories; the only user of utf8proc. Texts are valid UTF-8. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normalize_unicode(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);

// The general category's two letters: "Lu", "Nd", "Zs"; "Cn" if unassigned.
std::string_view unicode_category(uint32_t code_point);

// The White_Space property, as in Rust's char::is_whitespace.
bool is_white_space(uint32_t code_point);
bool is_nonspacing_mark(uint32_t code_point);  // category Mn
bool is_other(uint32_t code_point);            // categories C*: control, format, unassigned...
bool is_word_character(uint32_t code_point);   // matched by \w

// Bytes of white space at the beginning or end.
size_t leading_white_space(std::string_view text);
size_t trailing_white_space(std::string_view text);

}  // namespace lockstep
