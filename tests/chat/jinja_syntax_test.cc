#include "chat/rendered.h"

namespace lockstep {

TEST_CASE("a template's last newline is removed, and so is the one after a block tag") {
  CHECK(rendered("a\n") == "a");
  CHECK(rendered("a\n\n") == "a\n");
  CHECK(rendered("{% if true %}\nx\n{% endif %}\ny") == "x\ny");
  CHECK(rendered("{{ 1 }}\nx") == "1\nx");
  CHECK(rendered("a\r\nb\rc") == "a\nb\nc");
}

TEST_CASE("white space before a block tag at the start of a line is removed") {
  CHECK(rendered("a\n   {% if true %}b{% endif %}") == "a\nb");
  CHECK(rendered("a   {% if true %}b{% endif %}") == "a   b");
  CHECK(rendered("   {# c #}b") == "b");
  CHECK(rendered("   {{ 1 }}") == "   1");
  CHECK(rendered("   {%+ if true %}b{% endif %}") == "   b");
}

TEST_CASE("a minus removes all white space on its side") {
  CHECK(rendered("a \n {{- 1 -}} \n b") == "a1b");
  CHECK(rendered("a \n {%- if true -%} \n b {%- endif %}") == "ab");
  CHECK(rendered("a {#- c -#} b") == "ab");
}

TEST_CASE("raw text is printed as it is") {
  CHECK(rendered("{% raw %}{{ x }} {% if %}{% endraw %}!") == "{{ x }} {% if %}!");
}

TEST_CASE("the end of a tag inside brackets does not end the tag") {
  CHECK(rendered("{{ {'a': {'b': 1}} }}") == "{'a': {'b': 1}}");
  CHECK(rendered("{{ '}}' }}") == "}}");
}

TEST_CASE("strings have Python's escapes and adjacent ones are concatenated") {
  CHECK(rendered(R"({{ "a\n\t\"\\" ~ '\x41\u00e9\U0001F642\101' }})") ==
        "a\n\t\"\\A\u00e9\U0001F642"
        "A");
  CHECK(rendered(R"({{ 'a\qb' 'c' }})") == "a\\qbc");
}

TEST_CASE("a syntax error is one sentence with the line") {
  const auto message = [](std::string_view source) { return refused(source).message; };
  CHECK(message("a\n{% if %}") ==
        "line 2 of the chat template: expected an expression, found '%}'");
  CHECK(message("{{ x ") == "line 1 of the chat template: a tag does not end");
  CHECK(message("{% if x %}a") ==
        "line 1 of the chat template: expected 'endif', found the end of the template");
  CHECK(message("\n\n{% include 'x' %}") == "line 3 of the chat template: unknown tag 'include'");
  CHECK(message("{% break %}") == "line 1 of the chat template: 'break' outside a loop");
  CHECK(message("{{ (1]) }}") == "line 1 of the chat template: unexpected ']'");
  CHECK(message("{# a") == "line 1 of the chat template: the comment does not end");
  CHECK(refused("{{ x ").code == ErrorCode::kCorrupt);
  CHECK(refused("\xff").code == ErrorCode::kCorrupt);
}

TEST_CASE("expressions nested without end are refused") {
  const std::string many(100'000, '(');
  CHECK(refused("{{ " + many).code == ErrorCode::kCorrupt);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{% if 1 %}";
  CHECK(refused(deep).code == ErrorCode::kCorrupt);
  std::string sum = "{{ 1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  CHECK(refused(sum + " }}").code == ErrorCode::kExhausted);
}

}  // namespace lockstep
