// Constraints as they are sent: each form, markers with and without special tokens, and invalid
// ones.
#include "grammar/constraint.h"

#include <fmt/core.h>

#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

// Bytes as tokens, and <call>, </call> and ｜D｜ as special ones.
std::shared_ptr<const Tokenizer> tokenizer() {
  JsonObject vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[fmt::format("<0x{:02X}>", byte)] = byte;
  }
  JsonArray added;
  int id = 256;
  for (const char* special : {"<call>", "</call>", "｜D｜", "<end>"}) {
    added.push_back(JsonObject{{"id", id++},
                               {"content", special},
                               {"special", true},
                               {"single_word", false},
                               {"lstrip", false},
                               {"rstrip", false},
                               {"normalized", false}});
  }
  const JsonObject file{{"added_tokens", added},
                        {"decoder", JsonObject{{"type", "ByteFallback"}}},
                        {"model", JsonObject{{"type", "BPE"},
                                             {"byte_fallback", true},
                                             {"vocab", vocabulary},
                                             {"merges", JsonArray()}}}};
  auto made = Tokenizer::parse(dump_json(file));
  REQUIRE_MESSAGE(made.ok(), error_of(made));
  return made.value();
}

constexpr int32_t kCall = 256, kCallEnd = 257, kPart = 258, kEnd = 259;

Compiled compiled(std::string_view spec) {
  return grammar_of(compile_constraint(spec, *tokenizer()));
}

bool allows(std::string_view spec, std::string_view text) {
  return accepts(compiled(spec), text);
}

std::string constraint_refusal(std::string_view spec) {
  return error_of(compile_constraint(spec, *tokenizer()));
}

// Texts, each followed by its special token unless that is -1.
bool allows_tokens(std::string_view spec,
                   const std::vector<std::pair<std::string, int32_t>>& parts) {
  const auto trie = VocabularyTrie::build(*tokenizer(), std::span(&kEnd, 1));
  REQUIRE(trie.ok());
  Matcher matcher(compiled(spec), trie.value());
  for (const auto& [text, token] : parts) {
    if (!matcher.accept_bytes(text)) return false;
    if (token >= 0 && !matcher.accept_token(token)) return false;
  }
  return matcher.may_end();
}

}  // namespace

TEST_CASE("a constraint is a schema, any object, a regex or a grammar") {
  CHECK(allows(R"({"json_schema":{"type":"integer"},"strict":true})", "12"));
  CHECK_FALSE(allows(R"({"json_schema":{"type":"integer"},"strict":true})", "\"12\""));
  CHECK(allows(R"({"json_object":true})", R"({"a": [1, null]})"));
  CHECK_FALSE(allows(R"({"json_object":true})", "[1]"));
  CHECK(allows(R"({"regex":"[a-z]{2}"})", "ab"));
  CHECK_FALSE(allows(R"({"regex":"[a-z]{2}"})", "abc"));
  CHECK(allows(R"({"ebnf":"root ::= \"yes\" | \"no\""})", "no"));
  CHECK_FALSE(allows(R"({"ebnf":"root ::= \"yes\" | \"no\""})", "maybe"));
}

TEST_CASE("a grammar's special tokens are those of the tokenizer") {
  CHECK(allows_tokens(R"({"ebnf":"root ::= <call> \"a\""})", {{"", kCall}, {"a", -1}}));
  CHECK_FALSE(constraint_refusal(R"({"ebnf":"root ::= <nothing>"})").empty());
}

TEST_CASE("keywords that are not enforced are a warning, and refused when strict") {
  const std::string schema = R"({"json_schema":{"type":"array","uniqueItems":true},"of":"f")";
  const auto warned = check_constraint(schema + "}", *tokenizer());
  REQUIRE(warned.ok());
  REQUIRE(warned.value().size() == 1);
  CHECK(warned.value()[0] == "f: the keyword \"uniqueItems\" is not enforced");
  CHECK(constraint_refusal(schema + R"(,"strict":true})") ==
        "f: the keyword \"uniqueItems\" cannot be enforced while decoding");
}

TEST_CASE("arguments are objects even if their schema allows other types") {
  CHECK(allows(R"({"json_schema":{},"object":true})", "{}"));
  CHECK_FALSE(allows(R"({"json_schema":{},"object":true})", "1"));
  CHECK(
      allows(R"({"json_schema":{"properties":{"a":{"$ref":"#"}}},"object":true})", R"({"a": 3})"));
}

TEST_CASE("a marker is the special token, or its letters where there is none") {
  const std::string spec =
      R"({"sequence":[{"marker":"<call>"},{"text":"x"},{"marker":"</none>"}]})";
  CHECK(allows_tokens(spec, {{"", kCall}, {"x</none>", -1}}));
  CHECK_FALSE(allows_tokens(spec, {{"<call>x</none>", -1}}));
}

TEST_CASE("a marker may have a special token in its middle") {
  const std::string spec = R"({"marker":"<｜D｜calls>"})";
  CHECK(allows_tokens(spec, {{"<", kPart}, {"calls>", -1}}));
  CHECK_FALSE(allows_tokens(spec, {{"<｜D｜calls>", -1}}));
}

TEST_CASE("free text ends at a marker") {
  const std::string spec =
      R"({"sequence":[{"free":{"without":["<call>"],"unlike":"^ *\\{"}},{"marker":"<call>"}]})";
  CHECK(allows_tokens(spec, {{"hello <cal", kCall}}));
  CHECK_FALSE(allows_tokens(spec, {{"a <call> b", kCall}}));
  CHECK_FALSE(allows_tokens(spec, {{"  {", kCall}}));
  CHECK(allows_tokens(spec, {{"a {", kCall}}));
  CHECK_FALSE(allows_tokens(spec, {{"a", kCallEnd}, {"", kCall}}));
}

TEST_CASE("rules are used by name, and may use themselves") {
  const std::string spec = R"spec({
    "rules": {"nest": {"choice": [{"text": "x"},
      {"sequence": [{"text": "("}, {"rule": "nest"}, {"text": ")"}]}]}},
    "root": {"repeat": {"rule": "nest"}, "min": 1, "max": 2}})spec";
  CHECK(allows(spec, "((x))x"));
  CHECK_FALSE(allows(spec, "((x)"));
  CHECK_FALSE(allows(spec, "xxx"));
}

TEST_CASE("an invalid constraint is refused with a sentence") {
  CHECK(constraint_refusal("nothing").starts_with("the constraint is not valid JSON"));
  CHECK(constraint_refusal("[]") == "the constraint has a part that is not an object");
  CHECK(constraint_refusal("{}").starts_with(
      "the constraint has a part that is not one of text, marker"));
  CHECK(constraint_refusal(R"({"rule":"a"})").find("rule \"a\"") != std::string::npos);
  CHECK(constraint_refusal(R"({"rules":{"a":{"text":"b"}}})").find("root") != std::string::npos);
  CHECK(constraint_refusal(R"({"sequence":{}})").find("not a list") != std::string::npos);
  CHECK(constraint_refusal(R"({"repeat":{"text":"a"},"max":100000})").find("limit of 10000") !=
        std::string::npos);
  CHECK(constraint_refusal(R"({"json_schema":false})") == "no text at all satisfies the grammar");
  CHECK(constraint_refusal(R"({"tagged":{}})").find("before_key") != std::string::npos);
  const std::string long_text(kConstraintBytesMax + 1, ' ');
  CHECK(constraint_refusal(long_text).find("more than the limit of 2097152") != std::string::npos);
}

}  // namespace lockstep
