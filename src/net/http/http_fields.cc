#include "net/http/http_fields.h"

#include <algorithm>

#include "base/letters.h"

namespace lockstep {
namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::string_view find_field(const HttpFields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

size_t count_fields(const HttpFields& fields, std::string_view name) {
  return static_cast<size_t>(std::count_if(fields.begin(), fields.end(),
                                           [&](const auto& field) { return field.first == name; }));
}

bool lists_token(const HttpFields& fields, std::string_view name, std::string_view token) {
  for (const auto& [key, value] : fields) {
    if (key != name) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (is_same_word(trim(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

bool is_token_char(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_word || (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7F);
  });
}

bool is_same_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return lower_letter(a) == b; });
}

std::optional<uint64_t> parse_length(std::string_view text) {
  if (text.empty() || text.size() > kLengthDigitsMax) return std::nullopt;
  uint64_t length = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    length = length * 10 + static_cast<uint64_t>(c - '0');
  }
  return length;
}

}  // namespace lockstep
