// Masks compared with trying every token, rollback, copies, special tokens, and the automaton's
// limits.
#include <random>

#include "grammar/automaton/text.h"
#include "grammar/dfa/limits.h"
#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

using Words = std::vector<uint64_t>;

// All bytes, pairs common in JSON, words, long runs, and parts of characters; the last two are
// special.
std::vector<std::string> small_vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* word : {"{\"",
                           "\":",
                           "\",\"",
                           "\"}",
                           "},{",
                           "[{",
                           "true",
                           "null",
                           "false",
                           "the",
                           " the",
                           "them",
                           "theme",
                           " 12",
                           "123",
                           "1.5",
                           "0.0",
                           "\\\"",
                           "\\n",
                           "\\u00",
                           "\\ud83d",
                           "\xC3\xA9",
                           "\xE6\x97\xA5\xE6\x9C\xAC",
                           "\xF0\x9F",
                           "\xF0\x9F\x98\x80",
                           "a\"",
                           " \"a",
                           "]]",
                           "\n  ",
                           "    ",
                           "name",
                           "na",
                           "city",
                           "2024",
                           "-0",
                           "e+",
                           "x\xE6",
                           "aaaaaaaaaaaaaaaa"}) {
    tokens.emplace_back(word);
  }
  tokens.emplace_back(70, 'a');
  tokens.emplace_back(40, ' ');
  tokens.emplace_back("the");  // the same bytes twice
  tokens.emplace_back();
  tokens.emplace_back();
  return tokens;
}

// Many tokens of few characters, so that most tokens of large subtrees are allowed: the exceptions
// contain bytes that are not UTF-8, or end inside a character.
std::vector<std::string> large_vocabulary() {
  const std::vector<std::string> pieces{"a",
                                        "b",
                                        "c",
                                        " ",
                                        "1",
                                        "the",
                                        "\n",
                                        "\"",
                                        "\\",
                                        "<",
                                        "|",
                                        ">",
                                        "\xC3\xA9",
                                        "\xE6\x97\xA5",
                                        "\xEF\xBD\x9C",
                                        "\xF0\x9F\x98\x80",
                                        "\xE6",
                                        "\xEF\xBD",
                                        "\xF0\x9F\x98",
                                        "\x97",
                                        "\xED\xA0\x80",
                                        "\x01"};
  std::vector<std::string> tokens = small_vocabulary();
  tokens.resize(tokens.size() - 2);
  std::mt19937 random(5);
  const auto add = [&](size_t kinds, int pieces_max) {
    std::string token;
    for (int i = 0; i < pieces_max; ++i) token += pieces[random() % kinds];
    tokens.push_back(token);
  };
  for (int i = 0; i < 2000; ++i) add(5, 2 + i % 8);
  for (int i = 0; i < 2000; ++i) add(16, 2 + i % 5);
  for (int i = 0; i < 1000; ++i) add(pieces.size(), 2 + i % 4);
  tokens.emplace_back();
  tokens.emplace_back();
  return tokens;
}

struct SmallVocabulary {
  std::vector<std::string> tokens = small_vocabulary();
  int32_t tool = static_cast<int32_t>(tokens.size()) - 2;
  int32_t end = static_cast<int32_t>(tokens.size()) - 1;
  std::shared_ptr<const VocabularyTrie> trie =
      VocabularyTrie::build(tokens, std::span(&end, 1)).value();
};

Words mask_of(Matcher& matcher, const VocabularyTrie& trie) {
  Words words(trie.mask_words(), ~uint64_t{0});
  REQUIRE(matcher.mask(words).ok());
  return words;
}

// Walks at random and compares the mask with every token at each step. Returns the tokens.
std::vector<int32_t> checked_walk(Matcher matcher, const SmallVocabulary& vocabulary, uint32_t seed,
                                  int steps) {
  std::mt19937 random(seed);
  std::vector<int32_t> walked;
  for (int step = 0; step < steps && !matcher.has_ended(); ++step) {
    const Words mask = mask_of(matcher, *vocabulary.trie);
    std::vector<int32_t> allowed;
    int differences = 0;
    for (int32_t token = 0; token < vocabulary.trie->token_count(); ++token) {
      const bool accepts = matcher.accepts_token(token);
      differences += accepts != has_bit(mask, token);
      if (accepts) allowed.push_back(token);
    }
    CHECK(differences == 0);
    REQUIRE_FALSE(allowed.empty());
    const int32_t token = allowed[random() % allowed.size()];
    REQUIRE(matcher.accept_token(token));
    walked.push_back(token);
  }
  return walked;
}

const char* const kSchemas[] = {
    R"({"type":"object","properties":{"name":{"type":"string"},
        "city":{"type":"string","maxLength":5},
        "n":{"type":"integer","minimum":-5,"maximum":120}},"required":["name"]})",
    R"({})",
    R"({"type":"string","minLength":3,"maxLength":20})",
    R"({"anyOf":[{"type":"string","maxLength":3},{"type":"string","pattern":"^a+$"}]})",
    R"({"type":"string","pattern":"^[a-z ]{2,9}$"})",
    R"({"type":"object","additionalProperties":{"type":"number","multipleOf":0.5},
        "properties":{"the":true}})",
    R"({"type":"array","items":{"type":"string","format":"date"},"minItems":1,"maxItems":3})",
};

}  // namespace

TEST_CASE("a mask equals the result of trying every token") {
  const SmallVocabulary vocabulary;
  for (const char* schema : kSchemas) {
    CAPTURE(schema);
    const Compiled grammar = grammar_of(compile_schema(schema));
    for (uint32_t seed = 0; seed < 12; ++seed) {
      checked_walk(Matcher(grammar, vocabulary.trie), vocabulary, seed, 25);
    }
  }
}

TEST_CASE("masks of regexes and marker-free text equal the result of trying every token") {
  const SmallVocabulary vocabulary;
  for (const char* pattern : {"(the|them)*[^a]{0,6}", "\\p{L}+ .{3}", "[\\x00-\\x7f]{5}"}) {
    CAPTURE(pattern);
    checked_walk(Matcher(grammar_of(compile_regex(pattern)), vocabulary.trie), vocabulary, 1, 25);
  }
  Grammar grammar;
  const auto text = text_without(grammar, {"the", "a\"", "aab"});
  REQUIRE(text.ok());
  const Compiled compiled = grammar_of(compile_grammar(
      grammar, grammar.sequence({text.value(), grammar.literal("the"), grammar.token(294)})));
  checked_walk(Matcher(compiled, vocabulary.trie), vocabulary, 2, 40);
}

TEST_CASE("masks of free text in a large vocabulary equal the result of trying every token") {
  const SmallVocabulary vocabulary{.tokens = large_vocabulary()};
  const auto walk = [&](const Compiled& grammar) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
      checked_walk(Matcher(grammar, vocabulary.trie), vocabulary, seed, 12);
    }
  };
  const std::string bar = "\xEF\xBD\x9C";
  const std::vector<std::vector<std::string>> stops{
      {"<"}, {"<|", "the"}, {"<" + bar + "a"}, {bar}, {"\xE6\x97\xA5" + bar}, {"\n<", "\"\"", "1"}};
  for (const std::vector<std::string>& without : stops) {
    CAPTURE(without[0]);
    Grammar grammar;
    const auto text = text_without(grammar, without);
    REQUIRE(text.ok());
    walk(grammar_of(compile_grammar(
        grammar, grammar.sequence({text.value(), grammar.literal("<|"), text.value()}))));
  }
  // All characters but some, in and beyond ASCII; all but one of those beyond ASCII; two states
  // that alternate; states that are free text only once.
  for (const char* pattern :
       {"[^b]*", "[\\x20-\\x7f]*", "[^\\u{65e5}]*", "[^\\u{1f600}1]*<.*", "([^a][^b])*",
        "[^<]{30}1.*", "(a|[^<>]*)>", "[^\\u{80}-\\u{7ff}]*"}) {
    CAPTURE(pattern);
    walk(grammar_of(compile_regex(pattern)));
  }
  for (const char* schema : kSchemas) {
    CAPTURE(schema);
    walk(grammar_of(compile_schema(schema)));
  }
}

TEST_CASE("after rollback, and in copies, the masks are those of a matcher that never advanced") {
  const SmallVocabulary vocabulary;
  for (const char* schema : kSchemas) {
    CAPTURE(schema);
    const Compiled grammar = grammar_of(compile_schema(schema));
    const auto tokens = checked_walk(Matcher(grammar, vocabulary.trie), vocabulary, 99, 20);
    Matcher matcher(grammar, vocabulary.trie);
    std::vector<Words> masks;
    std::vector<Matcher> copies;
    for (const int32_t token : tokens) {
      masks.push_back(mask_of(matcher, *vocabulary.trie));
      copies.push_back(matcher);
      REQUIRE(matcher.accept_token(token));
    }
    CHECK_FALSE(matcher.rollback(tokens.size() + 1));
    for (size_t i = tokens.size(); i-- > 0;) {
      REQUIRE(matcher.rollback(1));
      CHECK(mask_of(matcher, *vocabulary.trie) == masks[i]);
      CHECK(mask_of(copies[i], *vocabulary.trie) == masks[i]);
    }
    CHECK(mask_of(matcher, *vocabulary.trie) == [&] {
      Matcher fresh = matcher.restarted();
      return mask_of(fresh, *vocabulary.trie);
    }());
  }
}

TEST_CASE("an end token is allowed where the text may end, and nothing after it") {
  const SmallVocabulary vocabulary;
  Matcher matcher(grammar_of(compile_schema(R"({"type":"integer"})")), vocabulary.trie);
  CHECK_FALSE(matcher.accept_token(vocabulary.end));
  REQUIRE(matcher.accept_token('7'));
  CHECK(matcher.may_end());
  CHECK_FALSE(matcher.must_end());
  REQUIRE(matcher.accept_token(vocabulary.end));
  CHECK(matcher.has_ended());
  CHECK_FALSE(matcher.accepts_token('7'));
  CHECK_FALSE(matcher.accepts_token(vocabulary.end));
  CHECK(mask_of(matcher, *vocabulary.trie) == Words(vocabulary.trie->mask_words()));
  REQUIRE(matcher.rollback(1));
  CHECK(matcher.accepts_token('7'));
}

TEST_CASE("a special token is one symbol and never its letters") {
  const SmallVocabulary vocabulary;
  Grammar grammar;
  const auto call = grammar.sequence(
      {grammar.token(vocabulary.tool), grammar.literal("{}"), grammar.token(vocabulary.tool)});
  const Compiled compiled =
      grammar_of(compile_grammar(grammar, grammar.repeat(call, 1, kUnbounded)));
  Matcher matcher(compiled, vocabulary.trie);
  CHECK_FALSE(matcher.accepts_token('{'));
  const Words first = mask_of(matcher, *vocabulary.trie);
  CHECK(has_bit(first, vocabulary.tool));
  REQUIRE(matcher.accept_token(vocabulary.tool));
  CHECK_FALSE(matcher.accepts_token(vocabulary.tool));
  CHECK(matcher.forced_bytes(10) == "{}");
  REQUIRE(matcher.accept_bytes("{}"));
  REQUIRE(matcher.accept_token(vocabulary.tool));
  CHECK(matcher.may_end());
  CHECK(matcher.accepts_token(vocabulary.tool));
  CHECK_FALSE(matcher.accepts_token(-1));
  CHECK_FALSE(matcher.accepts_token(1'000'000));
}

TEST_CASE("forced bytes are those without an alternative") {
  const Compiled grammar = grammar_of(
      compile_schema(R"({"type":"object","properties":{"name":{"const":"x"}},"required":["name"]})",
                     {.space = JsonSpace::kCompact}));
  Matcher matcher(grammar);
  CHECK(matcher.forced_bytes(100) == R"({"name":"x"})");
  CHECK(matcher.forced_bytes(3) == "{\"n");
}

TEST_CASE("an automaton drops states that no matcher uses, and matchers continue") {
  const SmallVocabulary vocabulary;
  // Each length is a state.
  const Compiled grammar = grammar_of(
      compile_schema(R"({"type":"array","items":{"type":"string","maxLength":1000000}})"));
  Matcher matcher(grammar, vocabulary.trie);
  REQUIRE(matcher.accept_bytes("[\""));
  Matcher copy = matcher;
  const Words before = mask_of(copy, *vocabulary.trie);
  const std::string part(10'000, 'x');
  size_t states_max = 0;
  for (int i = 0; i < 50; ++i) {
    REQUIRE(matcher.accept_bytes(part));
    states_max = std::max(states_max, matcher.state_count());
  }
  CHECK(states_max < kAutomatonStatesMax + 2 * part.size());
  CHECK(mask_of(copy, *vocabulary.trie) == before);
  REQUIRE(matcher.accept_bytes(std::string(500'000, 'x')));
  CHECK_FALSE(matcher.accepts_bytes("x"));
  REQUIRE(matcher.accept_bytes("\"]"));
  CHECK(matcher.may_end());
}

TEST_CASE("values nested deeper than the limit are refused, those within it are not") {
  const Compiled grammar = grammar_of(compile_schema(R"({"type":"array"})"));
  CHECK(accepts(grammar, std::string(400, '[') + std::string(400, ']')));
  Matcher matcher(grammar);
  CHECK_FALSE(matcher.accept_bytes(std::string(kStackDepthMax + 1, '[')));
}

TEST_CASE("an ambiguous grammar has few stacks") {
  // Every "a" may be read in two ways, each with its own stack.
  const Compiled grammar =
      grammar_of(compile_ebnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\""));
  const std::string text = std::string(300, 'a') + "x" + std::string(150, 'b');
  Matcher matcher(grammar);
  REQUIRE(matcher.accept_bytes(text));
  CHECK_FALSE(matcher.may_end());
  REQUIRE(matcher.accept_bytes(std::string(150, 'c')));
  CHECK(matcher.may_end());
  CHECK(matcher.state_count() < 2000);
}

}  // namespace lockstep
