// links: grammar
// Any sequence of tokens, rollbacks and copies under some schemas: a matcher's answers depend only
// on the accepted tokens. The first byte chooses the schema, the others the operations.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/automaton/matcher.h"
#include "grammar/schema/json_schema.h"

using namespace lockstep;

namespace {

constexpr std::array<std::string_view, 4> kSchemas{
    R"({})", R"({"type":"string","minLength":2,"maxLength":9})",
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"$ref":"#"}}})",
    R"({"type":"array","items":{"enum":["ab",1,null,{"a":[]}]},"maxItems":3})"};

std::shared_ptr<const CompiledGrammar> compiled(std::string_view text) {
  Grammar grammar;
  const auto schema = parse_json(text);
  const auto built = add_json_schema(grammar, schema.value());
  return compile_grammar(grammar, built.value().expression).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::shared_ptr<const CompiledGrammar>> grammars = [] {
    std::vector<std::shared_ptr<const CompiledGrammar>> made;
    for (const std::string_view schema : kSchemas) made.push_back(compiled(schema));
    return made;
  }();
  static const auto trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 250; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* word : {"{\"", "\":", "ab", "\"}", ""}) tokens.emplace_back(word);
    const int32_t end = static_cast<int32_t>(tokens.size()) - 1;
    return VocabularyTrie::build(tokens, std::span(&end, 1)).value();
  }();
  if (size == 0) return 0;
  Matcher matcher(grammars[data[0] % grammars.size()], trie);
  Matcher copy = matcher;
  std::vector<int32_t> accepted;
  std::vector<int32_t> of_copy;
  for (size_t i = 1; i < std::min<size_t>(size, 300); ++i) {
    if (data[i] == 255) {
      if (matcher.rollback(1)) accepted.pop_back();
    } else if (data[i] == 253) {
      copy = matcher;
      of_copy = accepted;
    } else if (matcher.accept_token(data[i])) {
      accepted.push_back(data[i]);
    }
  }
  for (const auto& [one, tokens] : {std::pair(&matcher, &accepted), std::pair(&copy, &of_copy)}) {
    Matcher fresh(grammars[data[0] % grammars.size()], trie);
    for (const int32_t token : *tokens) LOCKSTEP_CHECK(fresh.accept_token(token));
    LOCKSTEP_CHECK(fresh.may_end() == one->may_end());
    LOCKSTEP_CHECK(fresh.has_ended() == one->has_ended());
    std::vector<uint64_t> first(trie->mask_words());
    std::vector<uint64_t> second(trie->mask_words());
    LOCKSTEP_CHECK(fresh.mask(first).ok() && one->mask(second).ok());
    LOCKSTEP_CHECK(first == second);
  }
  return 0;
}
