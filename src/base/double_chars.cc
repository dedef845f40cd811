#include "base/double_chars.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <version>

#include "base/letters.h"

namespace lockstep {
namespace {

// The length of "inf", "infinity", "nan" or "nan(letters, digits, _)" in front; 0 if there is none.
size_t word_length(std::string_view text) {
  if (begins_with_any_case(text, "infinity")) return 8;
  if (begins_with_any_case(text, "inf")) return 3;
  if (!begins_with_any_case(text, "nan")) return 0;
  if (text.size() < 4 || text[3] != '(') return 3;
  size_t at = 4;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) {
    ++at;
  }
  return at < text.size() && text[at] == ')' ? at + 1 : 3;
}

// The length of digits with at most one point, and an exponent if it has digits; 0 if there is no
// digit in front of it.
size_t decimal_length(std::string_view text) {
  size_t at = 0, digits = 0;
  for (bool seen_point = false; at < text.size(); ++at) {
    if (is_digit(text[at])) {
      ++digits;
    } else if (text[at] == '.' && !seen_point) {
      seen_point = true;
    } else {
      break;
    }
  }
  if (digits == 0) return 0;
  if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  size_t end = at + 1;
  if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
  if (end == text.size() || !is_digit(text[end])) return at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end;
}

// Whether a number that was read as 0 is not 0: its digits in front of the exponent are not all
// zeros.
bool has_significant_digit(std::string_view decimal) {
  const size_t digits = std::min(decimal.find_first_of("eE"), decimal.size());
  return decimal.substr(0, digits).find_first_of("123456789") != std::string_view::npos;
}

}  // namespace

std::from_chars_result double_from_chars_by_strtod(const char* first, const char* last,
                                                   double& value) {
  const std::string_view text(first, static_cast<size_t>(last - first));
  const size_t sign = text.starts_with('-') ? 1 : 0;
  const std::string_view rest = text.substr(sign);
  const size_t decimal = decimal_length(rest);
  const size_t length = decimal > 0 ? decimal : word_length(rest);
  if (length == 0) return {first, std::errc::invalid_argument};
  const char* const end = first + sign + length;
  // strtod reads up to a NUL. lockstep sets no locale of numbers, so the decimal point is a point.
  const double number = std::strtod(std::string(first, end).c_str(), nullptr);
  const bool is_beyond =
      decimal > 0 &&
      (std::isinf(number) || (number == 0 && has_significant_digit(rest.substr(0, decimal))));
  if (is_beyond) return {end, std::errc::result_out_of_range};
  value = number;
  return {end, std::errc()};
}

std::from_chars_result double_from_chars(const char* first, const char* last, double& value) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(first, last, value);
#else
  return double_from_chars_by_strtod(first, last, value);
#endif
}

}  // namespace lockstep
