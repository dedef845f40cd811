#include "chat/rendered.h"

namespace lockstep {

TEST_CASE("tojson writes what json.dumps writes") {
  const char* x = R"({"x": {"b": [1, 2.0, true, null, "é\"\n<&>\u007f"], "a": {}, "c": []}})";
  CHECK(rendered("{{ x|tojson }}", x) ==
        "{\"b\": [1, 2.0, true, null, \"é\\\"\\n<&>\x7f\"], \"a\": {}, \"c\": []}");
  CHECK(rendered("{{ x|tojson(indent=2) }}", R"({"x": {"b": [1, {}], "c": {"d": 1}}})") ==
        "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"c\": {\n    \"d\": 1\n  }\n}");
  CHECK(rendered("{{ 'é🙂'|tojson(ensure_ascii=true) }}") == "\"\\u00e9\\ud83d\\ude42\"");
  CHECK(rendered("{{ {'b': 1, 'a': [2, 3]}|tojson(sort_keys=true, separators=(',', ':')) }}") ==
        "{\"a\":[2,3],\"b\":1}");
  CHECK(rendered("{{ {1: 2, none: 3, true: 4}|tojson }}") == "{\"1\": 4, \"null\": 3}");
  CHECK(rendered("{{ [1e-7, 1e16, (1, 2)]|tojson }}") == "[1e-07, 1e+16, [1, 2]]");
  CHECK(refused("{{ x|tojson }}").message ==
        "line 1 of the chat template: Object of type Undefined is not JSON serializable");
}

TEST_CASE("from_json parses, and names what it cannot parse") {
  CHECK(rendered("{{ ('{\"a\": [1, 2.5]}'|from_json).a[1] }}") == "2.5");
  CHECK(!render_pieces("{{ '{'|from_json }}").ok());
}

TEST_CASE("filters of text") {
  CHECK(rendered("{{ ' a '|trim }}|{{ 'xax'|trim('x') }}|{{ 'aB'|upper }}|{{ 'aB'|lower }}") ==
        "a|a|AB|ab");
  CHECK(rendered("{{ 'hELLO wORLD'|capitalize }}|{{ 'hello wORLD'|title }}") ==
        "Hello world|Hello World");
  CHECK(rendered("{{ 'aaa'|replace('a', 'b', 2) }}|{{ 'abc'.replace('', '-') }}") == "bba|-a-b-c-");
  CHECK(rendered("{{ 'a\nb\n\nc'|indent(2) }}|{{ 'a\nb'|indent('> ', true) }}") ==
        "a\n  b\n\n  c|> a\n> b");
  CHECK(rendered("{{ 12|string + 'x' }}|{{ none|string }}") == "12x|None");
  CHECK(rendered("{{ 'straße ǆ İ'|upper }}|{{ 'ÀÉ Σ'|lower }}") == "STRASSE Ǆ İ|àé σ");
}

TEST_CASE("text added to a safe string is escaped, as in Python") {
  CHECK(rendered("{{ '<' + ('\"'|safe) + '>' }}|{{ '<' ~ ('\"'|safe) }}") == "&lt;\"&gt;|<\"");
}

TEST_CASE("filters of numbers") {
  CHECK(rendered("{{ '12'|int }} {{ '1.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 2.7|int }}") ==
        "12 1 0 7 2");
  CHECK(rendered("{{ '1.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ ' -3e5 '|float }}") ==
        "1.5 0.0 3.0 -300000.0");
  CHECK(rendered("{{ -3|abs }} {{ 2.5|round }} {{ 2.345|round(1) }} {{ 2.1|round(0, 'ceil') }}") ==
        "3 2.0 2.3 3.0");
}

TEST_CASE("filters of sequences") {
  CHECK(rendered("{{ [3,1,2]|sort }}{{ ['b','A']|sort }}{{ [1,2]|sort(reverse=true) }}") ==
        "[1, 2, 3]['A', 'b'][2, 1]");
  const char* x = R"({"x": [{"n": "b", "k": 1}, {"n": "a", "k": 2}, {"n": "c", "k": 1}]})";
  CHECK(rendered("{{ x|sort(attribute='n')|map(attribute='n')|join(',') }}", x) == "a,b,c");
  CHECK(rendered("{{ x|selectattr('k', 'equalto', 1)|map(attribute='n')|list }}", x) ==
        "['b', 'c']");
  CHECK(rendered("{{ x|rejectattr('k', '==', 1)|list|length }}", x) == "1");
  CHECK(rendered("{{ [1, 'a', none]|select('string')|list }}{{ [0, 1]|reject|list }}") ==
        "['a'][0]");
  CHECK(rendered("{{ ['a', 'b']|map('upper')|join('-') }}{{ [1, 1.0, 'a', 'A']|unique|list }}") ==
        "A-B[1, 'a']");
  CHECK(
      rendered("{{ [1,2]|first }}{{ [1,2]|last }}{{ [1,2]|sum }}{{ [1,2]|max }}{{ [1,2]|min }}") ==
      "12321");
  CHECK(rendered("{{ {'b': 1, 'A': 2}|dictsort }}{{ {'b': 1}|items|list }}") ==
        "[('A', 2), ('b', 1)][('b', 1)]");
  CHECK(rendered("{{ 'abc'|reverse }}{{ [1,2]|reverse|list }}{{ 'ab'|list }}") ==
        "cba[2, 1]['a', 'b']");
  CHECK(refused("{{ [1, 'a']|sort }}").code == ErrorCode::kUnsupported);
  CHECK(refused("{{ 1|nothing }}").message ==
        "line 1 of the chat template: there is no filter named 'nothing'");
}

TEST_CASE("filters that look for elements find none in none") {
  for (const char* none : {"none", "0", "false", "''", "[]", "{}", "x"}) {
    CAPTURE(none);
    for (const char* filter :
         {"select", "select('string')", "reject", "reject('none')", "selectattr('k')",
          "selectattr('k', 'equalto', 1)", "rejectattr('k')", "rejectattr('k', 'none')",
          "map('upper')", "map(attribute='k')", "map(attribute='k', default=1)"}) {
      CAPTURE(filter);
      CHECK(rendered("{{ " + std::string(none) + "|" + filter + "|list }}") == "[]");
    }
  }
  // A true value must be a sequence.
  for (const char* filter : {"select", "reject", "selectattr('k')", "rejectattr('k')"}) {
    CHECK(refused("{{ 7|" + std::string(filter) + "|list }}").code == ErrorCode::kUnsupported);
  }
}

TEST_CASE("title is Jinja's, whose words begin after white space and brackets only") {
  CHECK(rendered("{{ \"it's a well-known (old) {new} [one] <b\"|title }}") ==
        "It's A Well-Known (Old) {New} [One] <B");
  CHECK(rendered("{{ 'a.b c_d'|title }}|{{ 12|title }}|{{ 'ÉTÉ ß'|title }}") ==
        "A.b C_d|12|Été SS");
}

TEST_CASE("sequences are put into groups") {
  CHECK(rendered("{{ [1,2,3,4,5]|batch(2)|list }}{{ [1,2,3]|batch(2, 'x')|list }}") ==
        "[[1, 2], [3, 4], [5]][[1, 2], [3, 'x']]");
  CHECK(rendered("{{ [1,2]|batch(0)|list }}{{ [1,2]|batch(-1)|list }}{{ []|batch(2)|list }}") ==
        "[[], [1, 2]][[1, 2]][]");
  CHECK(rendered("{{ [1,2,3,4,5]|slice(3)|list }}{{ [1,2,3,4,5]|slice(3, 'x')|list }}") ==
        "[[1, 2], [3, 4], [5]][[1, 2], [3, 4], [5, 'x']]");
  CHECK(rendered("{{ [1]|slice(3)|list }}{{ 'abc'|slice(2)|list }}{{ [1]|slice(-1)|list }}") ==
        "[[1], [], []][['a', 'b'], ['c']][]");
  CHECK(refused("{{ [1]|slice(0)|list }}").code == ErrorCode::kUnsupported);
  CHECK(refused("{{ [1]|slice(10001)|list }}").message ==
        "line 1 of the chat template: slices is 10001, at most 10000 is possible");
  CHECK(refused("{{ [1]|batch|list }}").code == ErrorCode::kUnsupported);
  const char* x =
      R"({"x": [{"r": "b", "n": 1}, {"r": "A", "n": 2}, {"r": "a", "n": 3}, {"n": 4}]})";
  CHECK(rendered("{% for r, group in x|groupby('r', default='b') %}{{ r }}:{{ "
                 "group|map(attribute='n')|join(',') }};{% endfor %}",
                 x) == "A:2,3;b:1,4;");
  CHECK(rendered("{% for r, group in x|groupby('r', default='b', case_sensitive=true) %}{{ r }}:{{ "
                 "group|map(attribute='n')|join(',') }};{% endfor %}",
                 x) == "A:2;a:3;b:1,4;");
  CHECK(rendered("{{ [[1, 'a'], [0, 'b'], [1, 'c']]|groupby(0) }}") ==
        "[(0, [[0, 'b']]), (1, [[1, 'a'], [1, 'c']])]");
}

TEST_CASE("texts are laid out") {
  CHECK(rendered("[{{ 'ab'|center(5) }}][{{ 'abc'|center(6) }}][{{ 'ab'|center(1) }}]") ==
        "[  ab ][ abc  ][ab]");
  CHECK(rendered("[{{ 'é'|center(4) }}][{{ none|center(6) }}]") == "[ é  ][ None ]");
  CHECK(refused("{{ 'a'|center(10001) }}").message ==
        "line 1 of the chat template: center is wider than 10000");
  CHECK(
      rendered("{{ '<a href=\"x\">&\\'</a>'|e }}|{{ '<'|escape|e }}|{{ '<'|safe|e }}|{{ 1|e }}") ==
      "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;|&lt;|<|1");
  CHECK(rendered("{{ '%s is %d%%'|format('x', 5) }}|{{ '%05.1f'|format(2.25) }}") ==
        "x is 5%|002.2");
  CHECK(refused("{{ '%s'|format }}").code == ErrorCode::kUnsupported);
  CHECK(rendered("{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}") ==
        "foo...|foo ba...");
  CHECK(rendered("{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(11, false, "
                 "'...', 0) }}") == "foo bar baz qux|foo bar...");
  CHECK(rendered("{{ 'ééé ééé ééé'|truncate(5, true, '…', 0) }}|{{ 'ab'|truncate(1, end='') }}") ==
        "ééé …|ab");
  CHECK(rendered("{{ \"it's a_b, née 東京 2½! 🙂\"|wordcount }}{{ ''|wordcount }}{{ "
                 "none|wordcount }}") == "601");
  CHECK(refused("{{ 'abcdefghijk'|truncate(2) }}").message ==
        "line 1 of the chat template: expected length >= 3, got 2");
}

TEST_CASE("a generator is true and empty once it has been read") {
  CHECK(rendered("{% set g = []|select %}{{ 'yes' if g }}") == "yes");
  CHECK(rendered("{% set g = [1]|select %}{{ g|list }}{{ g|list }}") == "[1][]");
}

TEST_CASE("default replaces undefined values, and false ones on request") {
  CHECK(rendered("{{ x|default('d') }}{{ ''|default('d') }}{{ ''|d('e', true) }}") == "de");
}

TEST_CASE("methods of text") {
  CHECK(rendered("{{ 'a b  c'.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}") ==
        "['a', 'b', 'c']['a', 'b,c']['a,b', 'c']");
  CHECK(rendered("{{ 'xxaxx'.strip('x') }}{{ ' a'.lstrip() }}{{ 'a\n'.rstrip('\n') }}") == "aaa");
  CHECK(rendered(
            "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.find('c') }}") ==
        "TrueTrue2");
  CHECK(
      rendered("{{ ','.join(['a', 'b']) }}{{ 'aXbX'.count('X') }}{{ 'a\r\nb\n'.splitlines() }}") ==
      "a,b2['a', 'b']");
  CHECK(refused("{{ 'a'.split('') }}").message == "line 1 of the chat template: empty separator");
}

TEST_CASE("lists grow and shrink, dictionaries are read") {
  CHECK(rendered("{% set l = [1] %}{% set _ = l.append(2) %}{{ l.pop(0) }}{{ l }}") == "1[2]");
  CHECK(rendered("{{ {'a': none}.get('a', 1) }}{{ {}.get('b', 2) }}{{ {}.get('b') }}") ==
        "None2None");
  CHECK(rendered("{{ {'a': 1}.keys()|list }}{{ {'a': 1}.values()|list }}") == "['a'][1]");
  CHECK(refused("{{ [].pop() }}").code == ErrorCode::kUnsupported);
  CHECK(refused("{{ {}.popitem() }}").message ==
        "line 1 of the chat template: chat templates cannot call dict.popitem");
}

TEST_CASE("tests of types") {
  const auto kinds = [](std::string_view value) {
    std::string result;
    for (const char* test : {"string", "mapping", "iterable", "sequence", "boolean", "number",
                             "integer", "float", "none", "true", "false", "defined", "undefined"}) {
      const std::string source =
          "{% if " + std::string(value) + " is " + test + " %}" + test + " {% endif %}";
      result += rendered(source);
    }
    return result;
  };
  CHECK(kinds("'a'") == "string iterable sequence defined ");
  CHECK(kinds("{}") == "mapping iterable sequence defined ");
  CHECK(kinds("true") == "boolean number true defined ");
  CHECK(kinds("1") == "number integer defined ");
  CHECK(kinds("1.5") == "number float defined ");
  CHECK(kinds("none") == "none defined ");
  CHECK(kinds("x") == "iterable sequence undefined ");
  CHECK(
      rendered("{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ 'a' is in ['a'] }}{{ 1 is not none }}") ==
      "TrueTrueTrueTrue");
}

TEST_CASE("tests of case look at letters only") {
  CHECK(rendered("{{ 'ab1' is lower }}{{ 'aB' is lower }}{{ '1' is lower }}{{ '' is lower }}") ==
        "TrueFalseFalseFalse");
  CHECK(rendered("{{ 'AB 1' is upper }}{{ 'Ab' is upper }}{{ '-' is upper }}{{ none is upper }}") ==
        "TrueFalseFalseFalse");
  CHECK(rendered("{{ 'é' is lower }}{{ 'É' is upper }}") == "TrueTrue");
}

TEST_CASE("tests of identity, escaping and names") {
  CHECK(rendered("{{ none is sameas none }}{{ true is sameas true }}{{ 1 is sameas true }}"
                 "{{ 1 is sameas 1.0 }}{{ [] is sameas [] }}") == "TrueTrueFalseFalseFalse");
  CHECK(rendered("{% set l = [1] %}{% set m = l %}{{ l is sameas m }}{{ l is sameas [1] }}") ==
        "TrueFalse");
  CHECK(rendered("{{ '<' is escaped }}{{ ('<'|safe) is escaped }}{{ ('<'|e) is escaped }}") ==
        "FalseTrueTrue");
  CHECK(rendered("{{ 'upper' is filter }}{{ 'groupby' is filter }}{{ 'pprint' is filter }}"
                 "{{ 'odd' is test }}{{ 'nothing' is test }}{{ 1 is test }}") ==
        "TrueTrueFalseTrueFalseFalse");
}

}  // namespace lockstep
