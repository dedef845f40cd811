#include "base/machine/tool_text.h"

#include <algorithm>
#include <charconv>

#include "base/double_chars.h"

namespace lockstep {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

}  // namespace

std::vector<std::string_view> tool_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < kToolLinesMax) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) + 1 - start);
}

std::vector<std::string_view> tool_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> leading_decimal(std::string_view text) {
  if (!leading_number(text)) return std::nullopt;
  const std::string_view number = text.substr(0, text.find_first_not_of("0123456789."));
  double value = 0;
  const auto parsed = double_from_chars(number.data(), number.data() + number.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::string_view> after_key(std::string_view line, std::string_view key) {
  const std::string_view text = trimmed(line);
  if (!text.starts_with(key)) return std::nullopt;
  return trimmed(text.substr(key.size()));
}

}  // namespace lockstep
