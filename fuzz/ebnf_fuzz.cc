// links: grammar
// An untrusted GBNF text is compiled or refused; its matcher never reaches a dead end that its mask
// does not show. The input is the grammar, a zero byte, and bytes to feed.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/automaton/matcher.h"
#include "grammar/ebnf.h"

using namespace lockstep;

namespace {

std::shared_ptr<const VocabularyTrie> bytes_and_words() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"ab", "abc", "\"}", "aaaa", "\xC3\xA9"}) tokens.emplace_back(word);
  tokens.emplace_back();
  const int32_t end = static_cast<int32_t>(tokens.size()) - 1;
  return VocabularyTrie::build(tokens, std::span(&end, 1)).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto trie = bytes_and_words();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(input.find('\0'), input.size());
  Grammar grammar;
  const auto root = add_ebnf(grammar, input.substr(0, zero));
  if (!root.ok()) return 0;
  const auto compiled = compile_grammar(grammar, root.value());
  if (!compiled.ok()) return 0;
  Matcher matcher(compiled.value(), trie);
  std::vector<uint64_t> words(trie->mask_words());
  const std::string_view bytes = input.substr(zero);
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 40); ++i) {
    if (!matcher.mask(words).ok()) return 0;
    for (int32_t token = 0; token < trie->token_count(); ++token) {
      const bool is_set = (words[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
      LOCKSTEP_CHECK(is_set == matcher.accepts_token(token));
    }
    if (!matcher.accept_token(static_cast<uint8_t>(bytes[i]))) continue;
    if (i % 3 == 0) LOCKSTEP_CHECK(matcher.rollback(1));
  }
  return 0;
}
