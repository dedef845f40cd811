#include "grammar/schema/bare_notation.h"

#include <fmt/core.h>

#include <algorithm>

#include "grammar/automaton/text.h"
#include "grammar/regex/regex.h"

namespace lockstep {
namespace {

using Expression = Grammar::Expression;

constexpr size_t kBareKeyBytesMax = 256;
constexpr uint32_t kBareOtherKeyMax = 64;  // characters of a key that the schema does not name
constexpr std::string_view kBareBlanks = " \t\r\n";

std::string lower_ascii(const std::string& text) {
  std::string result = text;
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

}  // namespace

Expression BareTexts::in_quotes(Expression content) {
  return grammar_.sequence({notation_.quote, content, notation_.quote});
}

Result<Dfa> BareTexts::texts() {
  if (!texts_) texts_ = TRY(words_without(notation_.text_stops, shapes_.budget()));
  return *texts_;
}

Result<Expression> BareTexts::text(const StringShape& strings) {
  Dfa words = TRY(texts());
  if (!strings.is_any()) {
    const Dfa wanted = TRY(shapes_.words_of(strings));
    words = TRY(join(wanted, words, DfaJoin::kBoth, shapes_.budget()));
  }
  return in_quotes(grammar_.text(words, CharacterCoding::kUtf8));
}

bool BareTexts::is_bare(const std::string& key) const {
  return !key.empty() && key.size() <= kBareKeyBytesMax &&
         key.find_first_of(notation_.key_stops) == std::string::npos &&
         kBareBlanks.find(key.front()) == std::string_view::npos &&
         kBareBlanks.find(key.back()) == std::string_view::npos;
}

Result<Expression> BareTexts::key(const KeySchema& key) {
  if (is_bare(key.name)) return grammar_.literal(key.name);
  const bool has_stop = std::any_of(
      notation_.text_stops.begin(), notation_.text_stops.end(),
      [&](const std::string& stop) { return key.name.find(stop) != std::string::npos; });
  if (!has_stop) return in_quotes(grammar_.literal(key.name));
  if (!key.is_required) return grammar_.never();
  return Error{ErrorCode::kUnsupported,
               "the model's way to write calls cannot hold the required key \"" + key.name + "\""};
}

Result<Expression> BareTexts::other_key(const Dfa& names) {
  std::string stops;
  for (const char letter : notation_.key_stops) stops += std::string("\\") + letter;
  const std::string inner = "[^\\t\\r\\n" + stops + "]";
  const std::string end = "[^ \\t\\r\\n" + stops + "]";
  const Dfa bare =
      TRY(regex_dfa(fmt::format("{0}(?:{1}{{0,{2}}}{0})?", end, inner, kBareOtherKeyMax - 2),
                    RegexMatch::kWhole, shapes_.budget()));
  const Dfa keys = TRY(join(names, bare, DfaJoin::kBoth, shapes_.budget()));
  const Dfa others = TRY(join(names, bare, DfaJoin::kFirstOnly, shapes_.budget()));
  const Dfa quoted = TRY(join(others, TRY(texts()), DfaJoin::kBoth, shapes_.budget()));
  return grammar_.choice({grammar_.text(keys, CharacterCoding::kUtf8),
                          in_quotes(grammar_.text(quoted, CharacterCoding::kUtf8))});
}

void BareTexts::sort(std::vector<KeySchema>& keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const KeySchema& a, const KeySchema& b) {
    return lower_ascii(a.name) < lower_ascii(b.name);
  });
}

}  // namespace lockstep
