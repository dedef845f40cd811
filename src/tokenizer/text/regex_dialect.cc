#include "tokenizer/text/regex_dialect.h"

#include <algorithm>
#include <vector>

#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

// Every code point has one of these general categories.
constexpr std::string_view kCategories[] = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

// Scripts named in patterns. In PCRE2 \p{Han} means all characters used with Han, such as U+3002,
// in other engines the script itself.
constexpr std::string_view kScripts[] = {
    "Arabic",    "Armenian", "Bengali",  "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic",
    "Georgian",  "Greek",    "Gujarati", "Gurmukhi", "Han",      "Hangul",     "Hebrew",
    "Hiragana",  "Kannada",  "Katakana", "Khmer",    "Lao",      "Latin",      "Malayalam",
    "Mongolian", "Myanmar",  "Sinhala",  "Tamil",    "Telugu",   "Thai",       "Tibetan"};

Error unknown_intersection(std::string_view pattern) {
  return unsupported_part("regex with the class intersection", pattern);
}

// The end of the class that opens at `begin`, including nested classes; npos if it is not closed.
size_t class_end(std::string_view pattern, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '[') {
      ++depth;
    } else if (pattern[i] == ']' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// "\p{Lu}\p{M}" -> {"Lu", "M"}; empty if there is anything else.
std::vector<std::string_view> properties_of(std::string_view body) {
  std::vector<std::string_view> names;
  while (!body.empty()) {
    const size_t close = body.find('}');
    if (!body.starts_with("\\p{") || close == std::string_view::npos) return {};
    names.push_back(body.substr(3, close - 3));
    body.remove_prefix(close + 1);
  }
  return names;
}

// A and not B is not (not A or B); "not A" is the list of the other categories.
Result<std::string> rewrite_class(std::string_view text) {
  const size_t both = text.find("&&");
  const std::string_view left = text.substr(1, both - 1);
  std::string_view right = text.substr(both + 2);
  right.remove_suffix(1);
  const bool is_negated = right.starts_with("[^") && right.ends_with(']');
  const auto wanted = properties_of(left);
  if (!is_negated || wanted.empty()) return unknown_intersection(text);
  const std::string_view excluded = right.substr(2, right.size() - 3);
  if (properties_of(excluded).empty()) return unknown_intersection(text);
  std::string result = "[^";
  size_t covered_count = 0;
  for (const std::string_view category : kCategories) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&](std::string_view name) {
      return category.starts_with(name);
    });
    if (is_wanted) {
      ++covered_count;
    } else {
      result += "\\p{" + std::string(category) + "}";
    }
  }
  const bool are_categories =
      covered_count > 0 && std::all_of(wanted.begin(), wanted.end(), [](std::string_view name) {
        return std::any_of(std::begin(kCategories), std::end(kCategories),
                           [&](std::string_view category) { return category.starts_with(name); });
      });
  if (!are_categories) return unknown_intersection(text);
  return result + std::string(excluded) + "]";
}

// \p{Han} -> \p{sc:Han}
std::string with_plain_scripts(std::string_view pattern) {
  std::string result;
  while (!pattern.empty()) {
    const bool is_escape = pattern[0] == '\\' && pattern.size() > 1;
    const size_t size = is_escape ? 2 : 1;
    result += pattern.substr(0, size);
    const bool is_property = pattern.starts_with("\\p{") || pattern.starts_with("\\P{");
    pattern.remove_prefix(size);
    if (!is_property) continue;
    const std::string_view name = pattern.substr(1, pattern.find('}') - 1);
    if (std::find(std::begin(kScripts), std::end(kScripts), name) == std::end(kScripts)) continue;
    result += "{sc:";
    pattern.remove_prefix(1);
  }
  return result;
}

Result<std::string> with_plain_classes(std::string_view pattern) {
  std::string result;
  size_t position = 0;
  while (position < pattern.size()) {
    if (pattern[position] == '\\') {
      result += pattern.substr(position, 2);
      position += 2;
    } else if (pattern[position] == '[') {
      const size_t end = class_end(pattern, position);
      if (end == std::string_view::npos) return unknown_intersection(pattern);
      const std::string_view text = pattern.substr(position, end - position);
      const bool intersects = text.find("&&") != std::string_view::npos;
      result += intersects ? TRY(rewrite_class(text)) : std::string(text);
      position = end;
    } else {
      result += pattern[position++];
    }
  }
  return result;
}

}  // namespace

Result<std::string> to_pcre2(std::string_view pattern) {
  const bool intersects = pattern.find("&&") != std::string_view::npos;
  return with_plain_scripts(intersects ? TRY(with_plain_classes(pattern)) : std::string(pattern));
}

}  // namespace lockstep
