// ASCII letters and digits, whatever the locale; other bytes are left as they are.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lockstep {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_text(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), lower_letter);
  return lower;
}

inline bool begins_with_any_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return lower_letter(a) == lower_letter(b); });
}

}  // namespace lockstep
