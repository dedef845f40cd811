#include "grammar/regex/regex_classes.h"

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tokenizer/text/unicode.h"

namespace lockstep {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 38> kLongNames{{
    {"Letter", "L"},
    {"Cased_Letter", "LC"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
}};

// Ranges of each two-letter category, read once (about 20 ms).
const std::map<std::string, std::vector<SymbolRange>>& categories() {
  static const auto all = [] {
    std::map<std::string, std::vector<SymbolRange>> found;
    for (uint32_t c = 0; c <= kCodePointMax; ++c) {
      if (c == 0xD800) c = 0xE000;
      auto& ranges = found[std::string(unicode_category(c))];
      if (!ranges.empty() && ranges.back().last + 1 == c) {
        ranges.back().last = c;
      } else {
        ranges.push_back({c, c});
      }
    }
    return found;
  }();
  return all;
}

}  // namespace

SymbolSet regex_class(char letter) {
  static const SymbolSet digits{{'0', '9'}};
  static const SymbolSet words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const SymbolSet spaces{
      {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  const auto& all = SymbolSet::scalar_values();
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return all.without(digits);
    case 'w':
      return words;
    case 'W':
      return all.without(words);
    case 's':
      return spaces;
    default:
      return all.without(spaces);
  }
}

std::optional<SymbolSet> unicode_property(std::string_view name) {
  for (const std::string_view key : {"General_Category=", "gc="}) {
    if (name.starts_with(key)) name.remove_prefix(key.size());
  }
  if (name == "Any") return SymbolSet::scalar_values();
  if (name == "ASCII") return SymbolSet{{0, 0x7F}};
  for (const auto& [long_name, short_name] : kLongNames) {
    if (name == long_name) name = short_name;
  }
  std::vector<SymbolRange> ranges;
  for (const auto& [category, of_category] : categories()) {
    const bool is_cased = category == "Lu" || category == "Ll" || category == "Lt";
    const bool fits = name == category || (name.size() == 1 && name[0] == category[0]) ||
                      (name == "LC" && is_cased);
    if (fits) ranges.insert(ranges.end(), of_category.begin(), of_category.end());
  }
  if (ranges.empty()) return std::nullopt;
  return SymbolSet(std::move(ranges));
}

}  // namespace lockstep
