#include "tokenizer/text/replacement.h"

#include <algorithm>
#include <utility>

#include "tokenizer/text/json_part.h"

namespace lockstep {

Result<Replacement> read_replacement(std::string_view part, const Json& value) {
  const Json* pattern = find(value, "pattern");
  if (pattern == nullptr) return corrupt_part(part, "has a Replace without a pattern");
  if (find(*pattern, "Regex") != nullptr) return unsupported_part(part, "Replace of a Regex");
  Replacement replacement;
  replacement.pattern = TRY(required_string(part, *pattern, "String"));
  replacement.content = TRY(required_string(part, value, "content"));
  if (replacement.pattern.empty()) return corrupt_part(part, "has a Replace of an empty pattern");
  return replacement;
}

Status check_growth(std::string_view part, const std::vector<Replacement>& replacements) {
  size_t growth = 1;
  for (const auto& [pattern, content] : replacements) {
    growth *= std::max<size_t>(1, (content.size() + pattern.size() - 1) / pattern.size());
    if (growth > kTextGrowthMax) return unsupported_part(part, "growth of the text");
  }
  return Ok{};
}

std::string replace_all(std::string_view text, const Replacement& replacement, size_t bytes_max) {
  std::string out;
  out.reserve(text.size());
  size_t position = 0;
  while (true) {
    size_t found = text.find(replacement.pattern, position);
    const size_t size = out.size() + (text.size() - position) + replacement.content.size();
    if (found != std::string_view::npos && size > bytes_max) found = std::string_view::npos;
    out += text.substr(position, found - position);
    if (found == std::string_view::npos) return out;
    out += replacement.content;
    position = found + replacement.pattern.size();
  }
}

}  // namespace lockstep
