#include "base/threads/work.h"
#include "chat/rendered.h"

namespace lockstep {

TEST_CASE("values print as in Python") {
  CHECK(rendered("{{ x }}", R"({"x": {"a": [true, null, 1, 2.0, "it's"], "b": "\"'\n\u0001"}})") ==
        "{'a': [True, None, 1, 2.0, \"it's\"], 'b': '\"\\'\\n\\x01'}");
  CHECK(rendered("{{ (1,) }}{{ () }}{{ (1, 'b') }}") == "(1,)()(1, 'b')");
  CHECK(rendered("{{ none }} {{ True }} {{ missing }}|") == "None True |");
  CHECK(rendered("{{ [1e16, 1e15, 1e-5, 0.0001, 123.456, -0.0, 1e100] }}") ==
        "[1e+16, 1000000000000000.0, 1e-05, 0.0001, 123.456, -0.0, 1e+100]");
}

TEST_CASE("arithmetic keeps integers and floats apart, as Python does") {
  CHECK(
      rendered("{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}") ==
      "3.5 3 -4 2 1024 0.5");
  CHECK(rendered("{{ 1 + 2.0 }} {{ true + 1 }} {{ 7.5 % 2 }} {{ -1 * 3 }} {{ 1 - 2 - 3 }}") ==
        "3.0 2 1.5 -3 -4");
  CHECK(rendered("{{ 'a' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }}") == "aaa [1, 1] [1, 2]");
  CHECK(rendered("{{ '%s-%d-%05.1f%%' % ('a', 3, 2.25) }} {{ '%r' % 'x' }}") == "a-3-002.2% 'x'");
  CHECK(rendered("{{ 1 ~ 'a' ~ none }}") == "1aNone");
  CHECK(refused("{{ 'a' + 1 }}").message ==
        "line 1 of the chat template: can only concatenate str (not \"int\") to str");
  CHECK(refused("{{ 1 // 0 }}").code == ErrorCode::kUnsupported);
  CHECK(refused("{{ 9223372036854775807 + 1 }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("and, or and not give Python's operands; comparisons chain") {
  CHECK(rendered("{{ 0 or 'x' }} {{ 1 and '' }}| {{ not [] }} {{ [] or none }}") ==
        "x | True None");
  CHECK(rendered("{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 == true }}") == "True False True");
  CHECK(rendered("{{ 'a' in 'cat' }} {{ 2 not in [1] }} {{ 'k' in {'k': 1} }}") ==
        "True True True");
  CHECK(rendered("{{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'a' == 1 }}") == "True True False");
  CHECK(rendered("{{ 'y' if 1 else 'n' }}{{ 'y' if 0 }}|") == "y|");
  CHECK(refused("{{ 1 < 'a' }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("indices and slices count characters, not bytes") {
  CHECK(rendered("{{ x[0] }}{{ x[-1] }}|{{ x[1:3] }}|{{ x[::-1] }}|{{ x[:-1] }}|{{ x[9:] }}",
                 R"({"x": "größe"})") == "ge|rö|eßörg|größ|");
  CHECK(rendered("{{ [1,2,3,4][::2] }}{{ [1,2,3][-2:] }}{{ [1,2,3][5:1:-1] }}{{ (1,2)[1:] }}") ==
        "[1, 3][2, 3][3](2,)");
  CHECK(rendered("{{ 'größe'|length }}") == "5");
  CHECK(refused("{{ [1][::0] }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("an undefined value prints nothing, is false and empty, and has no attributes") {
  CHECK(
      rendered("{{ x }}{% for y in x %}a{% endfor %}{{ x is defined }}{{ not x }}{{ x|length }}") ==
      "FalseTrue0");
  CHECK(rendered("{{ {}.a }}{{ 'x'.foo }}{{ [1][7] }}|") == "|");
  CHECK(refused("\n{{ x.y }}").message == "line 2 of the chat template: 'x' is undefined");
  CHECK(refused("{{ {}.a.b }}").message ==
        "line 1 of the chat template: 'dict object' has no attribute 'a'");
  CHECK(refused("{{ none[0] + 1 }}").message ==
        "line 1 of the chat template: None has no element 0");
  CHECK(refused("{{ x() }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("a dot finds methods before keys, a bracket keys before methods") {
  CHECK(rendered("{{ x['items'] }} {{ x.items()|list }} {{ x.other }}",
                 R"({"x": {"items": 1, "other": 2}})") == "1 [('items', 1), ('other', 2)] 2");
}

TEST_CASE("variables set in a loop are lost after it, those set in a namespace stay") {
  CHECK(rendered("{% set a = 0 %}{% for i in [1] %}{% set a = i %}{{ a }}{% endfor %}{{ a }}") ==
        "10");
  CHECK(rendered("{% set n = namespace(a=0) %}{% for i in [1,2] %}{% set n.a = n.a + i %}"
                 "{% endfor %}{{ n.a }}") == "3");
  CHECK(rendered("{% if true %}{% set a = 1 %}{% endif %}{{ a }}") == "1");
  CHECK(rendered("{% for i in [1,2] %}{{ a }}{% set a = i %}{% endfor %}") == "");
  CHECK(refused("{% set n = {} %}{% set n.a = 1 %}").code == ErrorCode::kUnsupported);
}

TEST_CASE("loops have their index and neighbours") {
  CHECK(rendered("{% for i in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                 "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}"
                 "{{ loop.nextitem }} {% endfor %}") ==
        "103TrueFalse3b 212FalseFalse3ac 321FalseTrue3b ");
  CHECK(rendered("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}") == "a1b2");
  CHECK(rendered("{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}") == "123");
  CHECK(rendered("{% for i in range(9) if i % 2 %}{{ i }}{{ loop.last }}{% endfor %}") ==
        "1False3False5False7True");
  CHECK(rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                 "{% if i > 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "02");
  CHECK(rendered("{% for i in [] %}a{% else %}b{% endfor %}") == "b");
  CHECK(refused("{% for a, b in [[1]] %}{% endfor %}").code == ErrorCode::kUnsupported);
  CHECK(refused("{% for a in 1 %}{% endfor %}").message ==
        "line 1 of the chat template: 'int' object is not iterable");
}

TEST_CASE(
    "macros have defaults, recurse, and see where they are defined, not where they are called") {
  CHECK(rendered("{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}") ==
        "1x12");
  CHECK(rendered("{% macro down(n) %}{{ n }}{% if n %}{{ down(n - 1) }}{% endif %}{% endmacro %}"
                 "{{ down(3) }}") == "3210");
  CHECK(rendered("{% macro m() %}{{ i }}{{ g }}{% endmacro %}{% set g = 'G' %}"
                 "{% for i in [1] %}{{ m() }}{% endfor %}") == "G");
  CHECK(rendered("{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}") == "False");
  CHECK(refused("{% macro m() %}{% endmacro %}{{ m(1) }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("blocks are set, filtered and marked as generation") {
  CHECK(rendered("{% set a %}x{{ 1 }}{% endset %}[{{ a }}]") == "[x1]");
  CHECK(rendered("{% set a | upper | trim %} x {% endset %}[{{ a }}]") == "[X]");
  CHECK(rendered("{% filter upper | replace('A', 'b') %}ca{% endfilter %}") == "Cb");
  CHECK(rendered("{% generation %}a{% set x = 1 %}{% endgeneration %}{{ x }}") == "a");
  CHECK(rendered("{% set a, b = 1, 2 %}{{ a }}{{ b }}") == "12");
}

TEST_CASE("a template's own error message is passed on alone") {
  const Error error = refused("\n{{ raise_exception('Roles must ' ~ 'alternate') }}");
  CHECK(error.code == ErrorCode::kInvalidArgument);
  CHECK(error.message == "Roles must alternate");
}

TEST_CASE("the clock is the one that was given") {
  CHECK(rendered("{{ strftime_now('%A %d %b %Y %j %H:%M:%S') }}") ==
        "Sunday 07 Sep 2025 250 08:05:03");
  CHECK(!parse_time("2025-13-07T08:05:03").ok());
  CHECK(!parse_time("yesterday").ok());
}

TEST_CASE("a hostile template ends at a limit before it exhausts the machine") {
  const auto exhausts = [](std::string_view source) {
    return refused(source).code == ErrorCode::kExhausted;
  };
  CHECK(exhausts("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"));
  CHECK(
      exhausts("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"));
  CHECK(exhausts("{{ 'abcdefgh' * 1000000000 }}"));
  CHECK(
      exhausts("{% set n = namespace(a='aaaaaaaa') %}{% for i in range(60) %}"
               "{% set n.a = n.a + n.a %}{% endfor %}"));
  CHECK(
      exhausts("{% set n = namespace(a=[1]) %}{% for i in range(60) %}"
               "{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}"));
  CHECK(exhausts(
      "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
      "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}"));
  CHECK(exhausts("{% set a = 'a' * 1000000 %}{% for i in range(1000) %}{{ a }}{% endfor %}"));
  CHECK(exhausts("{% set a = 'a' * 1000000 %}{{ a.replace('a', a) }}"));
  CHECK(exhausts("{{ ([('a' * 1000000)] * 100000) | join }}"));
  CHECK(refused("{% set l = [] %}{{ l.append(l) }}{{ l }}").code == ErrorCode::kUnsupported);
  CHECK(refused("{{ range(1000000) }}").code == ErrorCode::kUnsupported);
}

TEST_CASE("operations that take longer for more data cost more steps") {
  // A variable defined after many others.
  std::string source;
  for (int i = 0; i < 6'400; ++i) source += "{% set v" + std::to_string(i) + " = 1 %}";
  source += "{% for i in range(1000) %}{{ v6399 }}{% endfor %}";
  const Json messages = JsonArray();
  int64_t left = 50'000'000;
  ChatTemplateInput input;
  input.messages = &messages;
  input.steps_left = &left;
  REQUIRE(ChatTemplate::parse(source).value().render(input).ok());
  CHECK(50'000'000 - left > 1'000 * 6'400 / 64);

  // Removal at the front of a long list.
  Json many = JsonArray(60'000);
  input.messages = &many;
  input.steps_left = nullptr;
  const auto emptied =
      ChatTemplate::parse("{% for m in messages %}{% set first = messages.pop(0) %}{% endfor %}")
          .value()
          .render(input);
  REQUIRE_FALSE(emptied.ok());
  CHECK(emptied.error().message.find("more steps than a chat template may") != std::string::npos);
}

TEST_CASE("a rendering ends when its request is cancelled") {
  Work work(std::chrono::hours(1));
  const Work::Scope scope(work);
  CHECK(render_pieces("{% for i in range(3) %}{{ i }}{% endfor %}").ok());
  work.cancel();
  const auto ended = render_pieces("{% for i in range(3) %}{{ i }}{% endfor %}");
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.error().code == ErrorCode::kCancelled);
}

}  // namespace lockstep
