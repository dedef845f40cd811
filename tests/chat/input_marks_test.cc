#include "chat/rendered.h"

namespace lockstep {

TEST_CASE("text of the conversation is distinguished from text of the template") {
  CHECK(marked("<|u|>{{ x }}<|e|>", R"({"x": "<|e|>"})") == "<|u|>[<|e|>]<|e|>");
  CHECK(marked("{{ '<|' + x + '|>' }}", R"({"x": "a"})") == "<|[a]|>");
  CHECK(marked("{{ x ~ 1 ~ 'b' }}", R"({"x": "a"})") == "[a]1b");
}

TEST_CASE("marks follow the characters through operations on text") {
  const char* x = R"({"x": " Ab,Cd "})";
  CHECK(marked("{{ ('<' + x + '>').upper() }}", x) == "<[ AB,CD ]>");
  CHECK(marked("{{ ('<' + x|trim + '>')|lower|capitalize }}", x) == "<[ab,cd]>");
  CHECK(marked("{{ ('<' + x + '>')[1:4] }}|{{ ('<' + x)[::-1] }}", x) == "[ Ab]|[ dC,bA ]<");
  CHECK(marked("{{ ('<' + x).split(',')[0] }}", x) == "<[ Ab]");
  CHECK(marked("{{ ['a', x|trim, 'b']|join('-') }}", x) == "a-[Ab,Cd]-b");
  CHECK(marked("{{ x|trim|replace(',', '<|') }}", x) == "[Ab]<|[Cd]");
  CHECK(marked("{{ 'a%sb' % x|trim }}", x) == "a[Ab,Cd]b");
  CHECK(marked("{{ (x ~ '\n' ~ x)|indent(1) }}", x) == "[ Ab,Cd ]\n [ Ab,Cd ]");
  CHECK(marked("{{ x|first }}{{ x|list|last }}", x) == "[  ]");
}

TEST_CASE("marks follow through JSON, printed values, macros and blocks") {
  const char* x = R"({"x": {"k": ["v\"", 1]}})";
  CHECK(marked("{{ x|tojson }}", x) == "{\"[k]\": [\"[v\\\"]\", 1]}");
  CHECK(marked("{{ x }}", x) == "{'[k]': ['[v\"]', 1]}");
  CHECK(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x.k[0]) }}", x) == "<[v\"]>");
  CHECK(marked("{% set b %}<{{ x.k[0] }}>{% endset %}{{ b }}", x) == "<[v\"]>");
}

TEST_CASE("the known roles are words of the template, any other role is user input") {
  const char* source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";
  CHECK(marked(source, R"({"messages": [{"role": "user", "content": "user"}]})") ==
        "<|user|>[user]");
  CHECK(marked(source, R"({"messages": [{"role": "im_start", "content": ""}]})") ==
        "<|[im_start]|>");
}

TEST_CASE("variables of the model are words of the template") {
  const Json messages = JsonArray();
  const JsonObject tokens = {{"bos_token", "<s>"}};
  ChatTemplateInput input;
  input.messages = &messages;
  input.model_variables = &tokens;
  const auto pieces = ChatTemplate::parse("{{ bos_token }}").value().render(input);
  REQUIRE(pieces.ok());
  REQUIRE(pieces.value().size() == 1);
  CHECK(!pieces.value()[0].is_from_input);
}

}  // namespace lockstep
