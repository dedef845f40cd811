// Regexes and GBNF texts.
#include "grammar/automaton/text.h"
#include "grammar/grammar_checks.h"

namespace lockstep {

TEST_CASE("a regex matches as ECMA-262 says, over whole characters") {
  struct Case {
    const char* pattern;
    const char* text;
    bool matches;
  };
  for (const Case& c : std::vector<Case>{
           {"a|bc", "bc", true},
           {"a|bc", "abc", false},
           {"(ab){2,3}", "abab", true},
           {"(ab){2,3}", "ab", false},
           {"a{2,}", "aaaa", true},
           {"x{2", "x{2", true},
           {"[a-c\\d_-]+", "b7_-", true},
           {"[^a-c]", "b", false},
           {"[^a]", "\xE6\x97\xA5", true},
           {".", "\n", false},
           {"\\u{1F600}\\x41\\u00e9",
            "\xF0\x9F\x98\x80"
            "A\xC3\xA9",
            true},
           {"\\p{Lu}\\P{L}",
            "\xC3\x89"
            "1",
            true},
           {"\\p{Letter}+", "a1", false},
           {"^a$", "a", true},
           {"(^a|b)c$", "bc", true},
           {"a^b", "ab", false},
           {"(?:a)(?<n>b)", "ab", true},
           {"a*?b??", "aab", true},
           {"\\s\\S\\w\\W", " -_-", true},
           {"", "", true},
           {"(a?){3}", "aa", true},
           {"[]", "a", false},
           {"\\$\\.", "$.", true},
       }) {
    CAPTURE(c.pattern);
    CAPTURE(c.text);
    const auto compiled = compile_regex(c.pattern);
    const bool matches = compiled.ok() && accepts(compiled.value(), c.text);
    CHECK(matches == c.matches);
  }
}

TEST_CASE("a pattern of a schema is searched for") {
  CHECK(schema_accepts(R"({"type":"string","pattern":"b+"})", "\"abbc\""));
  CHECK_FALSE(schema_accepts(R"({"type":"string","pattern":"^b+"})", "\"abbc\""));
  CHECK(schema_accepts(R"({"type":"string","pattern":"^$|c$"})", "\"\""));
  CHECK(schema_accepts(R"({"type":"string","pattern":"^$|c$"})", "\"abc\""));
}

TEST_CASE("unsupported regex features are refused by name and position") {
  for (const auto& [pattern, word] : std::vector<std::pair<const char*, const char*>>{
           {"a(?=b)", "lookahead"},
           {"(?<!a)b", "lookbehind"},
           {"(a)\\1", "backreference"},
           {"\\bword", "word boundary"},
           {"(?i)a", "options"},
           {"\\p{Greek}", "Greek"},
           {"a++", "possessive"},
           {"(a", "\"(\""},
           {"a)", "\")\""},
           {"[a", "\"[\""},
           {"*a", "nothing to repeat"},
           {"a**", "nothing to repeat"},
           {"[b-a]", "wrong order"},
           {"a{3,2}", "wrong order"},
           {"a{20000}", "limit"},
           {"\\", "end"},
           {"\xFF", "UTF-8"},
       }) {
    CAPTURE(pattern);
    CHECK(error_of(compile_regex(pattern)).find(word) != std::string::npos);
  }
  CHECK(error_of(compile_regex(std::string(200, '(') + std::string(200, ')'))).find("limit") !=
        std::string::npos);
  CHECK(error_of(compile_regex(std::string(100'000, 'a'))).find("limit") != std::string::npos);
}

TEST_CASE("GBNF texts mean the same as in llama.cpp") {
  const char* arithmetic = R"EBNF(
root  ::= (expr "=" ws term "\n")+   # lines
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)EBNF";
  CHECK(ebnf_accepts(arithmetic, "a+1=2\n(b*3) = c1\n"));
  CHECK_FALSE(ebnf_accepts(arithmetic, "a+=2\n"));
  CHECK(ebnf_accepts("root ::= \"a\"{2,3} [^\\]\"]? \"\\x41\\u00E9\"", "aaaA\xC3\xA9"));
  CHECK(ebnf_accepts("root ::= . item{2}\nitem ::= \"x\" |\n \"y\"", "\xE6\x97\xA5xy"));
  CHECK(ebnf_accepts("root ::= (\"a\" | )* \"b\"", "aab"));
}

TEST_CASE("special tokens of a GBNF text are ids or names") {
  Grammar grammar;
  const auto ids = [](std::string_view name) {
    return name == "<|end|>" ? std::optional<int32_t>(7) : std::nullopt;
  };
  REQUIRE(add_ebnf(grammar, "root ::= <[3]> <|end|>", ids).ok());
  CHECK(error_of(add_ebnf(grammar, "root ::= <think>", ids)).find("<think>") != std::string::npos);
}

TEST_CASE("mistakes in a GBNF text name their line") {
  for (const auto& [text, word] : std::vector<std::pair<const char*, const char*>>{
           {"root ::= \"a", "line 1"},
           {"root ::= \"a\"\nroot ::= \"b\"", "line 2"},
           {"root ::= x", "does not define"},
           {"a ::= \"x\"", "root"},
           {"", "root"},
           {"root ::= (\"a\"", "\")\""},
           {"root ::= [a", "\"]\""},
           {"root ::= \"\\q\"", "escape"},
           {"root ::= \"a\"{2,1}", "wrong order"},
           {"root ::= root \"a\" | \"a\"", "left recursion"},
           {"root ::= a root \"b\" | \"c\"\na ::= \"\"?", "left recursion"},
           {"root ::= \"a\" root", "no text at all"},
           {"root ::= ]", "not expected here"},
           {"\xFF", "UTF-8"},
       }) {
    CAPTURE(text);
    CHECK(error_of(compile_ebnf(text)).find(word) != std::string::npos);
  }
}

TEST_CASE("tail-recursive and empty rules end") {
  CHECK(ebnf_accepts("root ::= \"a\" root | \"\"", std::string(5000, 'a')));
  CHECK(ebnf_accepts("root ::= ((\"a\"?)*)* \"b\"", "aab"));
  CHECK(ebnf_accepts("root ::= (\"a\"?){3,5} \"b\"", "aaaaab"));
  CHECK_FALSE(ebnf_accepts("root ::= (\"a\"?){3,5} \"b\"", "aaaaaab"));
  CHECK(ebnf_accepts("root ::= (\"a\"?){3,5} \"b\"", "b"));
  CHECK(ebnf_accepts("root ::= root | \"x\"", "x"));
}

TEST_CASE("text without markers goes up to the first one") {
  Grammar grammar;
  const auto text = text_without(grammar, {"</a>", "<b"});
  REQUIRE(text.ok());
  const Compiled compiled = grammar_of(
      compile_grammar(grammar, grammar.sequence({text.value(), grammar.literal("</a>")})));
  CHECK(accepts(compiled, "</a>"));
  CHECK(accepts(compiled, "x < y <</ \xE6\x97\xA5</</a>"));
  CHECK_FALSE(accepts(compiled, "x</a>y</a>"));
  CHECK_FALSE(accepts(compiled, "x<b</a>"));
  CHECK_FALSE(accepts(compiled, "\xFF</a>"));
  CHECK_FALSE(text_without(grammar, {""}).ok());
}

}  // namespace lockstep
