#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

std::string schema_refusal(std::string_view schema) {
  return error_of(compile_schema(schema));
}

}  // namespace

TEST_CASE("a string may have every escape of JSON, and only whole UTF-8") {
  const Compiled string = grammar_of(compile_schema(R"({"type":"string"})"));
  for (const char* text :
       {R"("")", R"("a")", R"("\"\\\/\b\f\n\r\t")", R"("\u00e9\u0000")", R"("\ud83d\uDE00")",
        "\"\xC3\xA9\"", "\"\xF0\x9F\x98\x80\"", "\"\x7F\""}) {
    CAPTURE(text);
    CHECK(accepts(string, text));
  }
  for (const char* text :
       {"\"", "\"\n\"", R"("\x41")", R"("\ud83d")", R"("\ud83d\u0041")", R"("\ude00")", "\"\xC3\"",
        "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xFF\"", "\"a\"b"}) {
    CAPTURE(text);
    CHECK_FALSE(accepts(string, text));
  }
}

TEST_CASE("lengths count characters, however they are written") {
  const Compiled two =
      grammar_of(compile_schema(R"({"type":"string","minLength":2,"maxLength":2})"));
  CHECK(accepts(two, "\"ab\""));
  CHECK(accepts(two, "\"\xF0\x9F\x98\x80\xE6\x97\xA5\""));
  CHECK(accepts(two, R"("\ud83d\ude00\n")"));
  CHECK_FALSE(accepts(two, R"("\ud83d\ude00")"));
  CHECK_FALSE(accepts(two, "\"abc\""));
  const Compiled patterned = grammar_of(
      compile_schema(R"({"type":"string","pattern":"^a*$","minLength":2,"maxLength":3})"));
  CHECK(accepts(patterned, "\"aaa\""));
  CHECK_FALSE(accepts(patterned, R"("a\u0061")"));  // no serialiser escapes a plain letter
  CHECK_FALSE(accepts(patterned, "\"a\""));
  CHECK_FALSE(accepts(patterned, "\"aaaa\""));
  CHECK_FALSE(accepts(patterned, "\"ab\""));
  const std::string million(1'000'000, 'x');
  const Compiled large = grammar_of(compile_schema(R"({"type":"string","maxLength":1000000})"));
  CHECK(accepts(large, "\"" + million + "\""));
  CHECK_FALSE(accepts(large, "\"" + million + "x\""));
}

TEST_CASE("white space is bounded, and none is allowed when compact") {
  const char* schema = R"({"properties":{"a":{"type":"array","items":{"type":"integer"}}},
                           "required":["a"],"type":"object"})";
  const Compiled bounded = grammar_of(compile_schema(schema));
  for (const char* text : {R"({"a":[1,2]})", R"({"a": [1, 2]})",
                           "{\n  \"a\": [\n    1,\n    2\n  ]\n}", "{\n\t\"a\": []\n}"}) {
    CAPTURE(text);
    CHECK(accepts(bounded, text));
  }
  CHECK_FALSE(accepts(bounded, "{\n\n\"a\":[]}"));
  CHECK_FALSE(accepts(bounded, "{\"a\":  []}"));
  CHECK_FALSE(accepts(bounded, "{\n" + std::string(41, ' ') + "\"a\":[]}"));
  const Compiled compact = grammar_of(compile_schema(schema, {.space = JsonSpace::kCompact}));
  CHECK(accepts(compact, R"({"a":[1,2]})"));
  CHECK_FALSE(accepts(compact, R"({"a": [1,2]})"));
}

TEST_CASE("keys come in the schema's order, required ones always, others if allowed") {
  const Compiled object = grammar_of(compile_schema(
      R"({"type":"object","properties":{"a":true,"b":true,"c":true},"required":["b"]})"));
  CHECK(accepts(object, R"({"b":1})"));
  CHECK(accepts(object, R"({"a":1,"b":1,"c":1})"));
  CHECK(accepts(object, R"({"b":1,"c":1})"));
  CHECK_FALSE(accepts(object, R"({"a":1})"));
  CHECK_FALSE(accepts(object, R"({"b":1,"a":1})"));
  CHECK_FALSE(accepts(object, R"({"b":1,"b":1})"));
  CHECK_FALSE(accepts(object, R"({"b":1,"d":1})"));
  CHECK_FALSE(accepts(object, R"({"b":1,})"));
  CHECK_FALSE(accepts(object, R"({,"b":1})"));
  const Compiled open = grammar_of(compile_schema(
      R"({"type":"object","properties":{"ab":{"type":"integer"}},
      "additionalProperties":{"type":"string"}})"));
  CHECK(accepts(open, R"({"ab":1,"a":"x","abc":"y"})"));
  CHECK_FALSE(accepts(open, R"({"ab":"x"})"));
  CHECK_FALSE(accepts(open, R"({"a":"x","ab":"y"})"));
  CHECK_FALSE(accepts(open, R"({"a":"x","\u0061b":"y"})"));
}

TEST_CASE("counts of keys are exact") {
  const Compiled counted = grammar_of(compile_schema(
      R"({"type":"object","properties":{"a":true,"b":true,"c":true},
      "minProperties":2,"maxProperties":2})"));
  CHECK(accepts(counted, R"({"a":1,"c":1})"));
  CHECK_FALSE(accepts(counted, R"({"a":1})"));
  CHECK_FALSE(accepts(counted, R"({"a":1,"b":1,"c":1})"));
  const Compiled most = grammar_of(compile_schema(R"({"type":"object","maxProperties":2})"));
  CHECK(accepts(most, R"({"x":1,"y":1})"));
  CHECK_FALSE(accepts(most, R"({"x":1,"y":1,"z":1})"));
  CHECK(schema_refusal(R"({"type":"object","minProperties":2})").find("minProperties") !=
        std::string::npos);
}

TEST_CASE("allOf, anyOf and oneOf join keywords exactly") {
  CHECK(schema_accepts(R"({"allOf":[{"minimum":3},{"maximum":5},{"multipleOf":0.5}]})", "4.5"));
  CHECK_FALSE(
      schema_accepts(R"({"allOf":[{"minimum":3},{"maximum":5},{"multipleOf":0.5}]})", "4.4"));
  const char* one = R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})";
  CHECK(schema_accepts(one, "1"));
  CHECK(schema_accepts(one, "2.5"));
  CHECK_FALSE(schema_accepts(one, "3"));
  CHECK_FALSE(schema_accepts(one, "3.0"));
  const char* shapes = R"({"oneOf":[
    {"type":"object","properties":{"t":{"const":"a"},"x":{"type":"integer"}},"required":["t"]},
    {"type":"object","properties":{"t":{"const":"b"},"y":{"type":"integer"}},"required":["t"]}]})";
  CHECK(schema_accepts(shapes, R"({"t":"a","x":1})"));
  CHECK(schema_accepts(shapes, R"({"t":"b","y":1})"));
  CHECK_FALSE(schema_accepts(shapes, R"({"t":"b","x":1})"));
  const char* same = R"({"oneOf":[{"type":"object","properties":{"a":true}},
                                  {"type":"object","properties":{"b":true}}]})";
  CHECK(schema_refusal(same).find("\"oneOf\"") != std::string::npos);
}

TEST_CASE("a recursive oneOf ends") {
  const char* schema = R"({"$defs":{"n":{"oneOf":[
     {"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}},
      "required":["l","r"],"additionalProperties":false},
     {"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"v":{"type":"integer"}},
      "required":["v"],"additionalProperties":false},
     {"type":"null"}]}},"$ref":"#/$defs/n"})";
  CHECK(schema_accepts(schema, R"({"l":{"v":1},"r":null})"));
  CHECK_FALSE(schema_accepts(schema, R"({"l":{"v":1}})"));
}

TEST_CASE("draft-07 and draft-04 forms that clients still send are accepted") {
  const char* tuple = R"({"items":[{"type":"integer"}],"additionalItems":false,"type":"array"})";
  CHECK(schema_accepts(tuple, "[1]"));
  CHECK_FALSE(schema_accepts(tuple, "[1,2]"));
  CHECK_FALSE(schema_accepts(R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", "3"));
  CHECK(schema_accepts(R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", "4"));
  CHECK(
      schema_accepts(R"({"definitions":{"a":{"type":"null"}},"$ref":"#/definitions/a"})", "null"));
}

TEST_CASE("unenforceable keywords are refused by name, or cause a warning if preferred") {
  const auto names = [](std::string_view schema, std::string_view keyword) {
    return schema_refusal(schema).find("\"" + std::string(keyword) + "\"") != std::string::npos;
  };
  CHECK(names(R"({"uniqueItems":true})", "uniqueItems"));
  CHECK(names(R"({"contains":{"type":"null"}})", "contains"));
  CHECK(names(R"({"dependentRequired":{"a":["b"]}})", "dependentRequired"));
  CHECK(names(R"({"unevaluatedProperties":false})", "unevaluatedProperties"));
  CHECK(names(R"({"not":{"required":["a"]}})", "not"));
  CHECK(names(R"({"type":"string","format":"regex"})", "format"));
  CHECK(names(R"({"type":"string","pattern":"(?=a)b"})", "pattern"));
  CHECK(names(R"({"$ref":"https://example.com/x"})", "$ref"));
  CHECK(names(R"({"type":"number","multipleOf":0.123456789})", "multipleOf"));
  CHECK(schema_refusal(R"({"uniqueItems":false,"type":"null"})").empty());

  Grammar grammar;
  const Json schema = parse_json(R"({"type":"array","uniqueItems":true,"contains":{"const":1},
      "items":{"type":"string","format":"iri","pattern":"\\bx"}})")
                          .value();
  const auto built = add_json_schema(grammar, schema, {.is_strict = false});
  REQUIRE(built.ok());
  CHECK(built.value().warnings.size() == 4);
  const Compiled compiled = grammar_of(compile_grammar(grammar, built.value().expression));
  CHECK(accepts(compiled, R"(["a","a"])"));
  CHECK_FALSE(accepts(compiled, R"([1])"));
}

TEST_CASE("an invalid schema, or one that allows nothing, gets one sentence") {
  CHECK(schema_refusal(R"({"type":"text"})").find("\"text\"") != std::string::npos);
  CHECK(schema_refusal(R"({"properties":[]})").find("\"properties\"") != std::string::npos);
  CHECK(schema_refusal("[]").find("must be an object") != std::string::npos);
  CHECK(schema_refusal(R"({"minLength":-1})").find("\"minLength\"") != std::string::npos);
  CHECK(schema_refusal(R"({"minLength":1.5})").find("\"minLength\"") != std::string::npos);
  CHECK(schema_refusal(R"({"maxLength":1e300,"minimum":1e-300,"maximum":1e300})").empty());
  // Bounds of 300 digits and 4999 remainders multiply.
  CHECK(schema_refusal(R"({"minimum":1e-300,"maximum":1e300,"multipleOf":4999})").find("limit") !=
        std::string::npos);
  CHECK(schema_refusal(R"({"$ref":"#/nowhere"})").find("nowhere") != std::string::npos);
  CHECK(schema_refusal("false").find("no text at all") != std::string::npos);
  // An infinite list never becomes a complete text.
  CHECK(
      schema_refusal(R"({"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]})")
          .find("no text at all") != std::string::npos);
  CHECK(schema_refusal(R"({"$ref":"#"})").find("limit") != std::string::npos);
}

TEST_CASE("alternatives that cannot be completed are never begun") {
  const Compiled grammar = grammar_of(compile_schema(
      R"({"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"type":"null"}]},
          "b":true}})"));
  Matcher matcher(grammar);
  REQUIRE(matcher.accept_bytes("{"));
  CHECK_FALSE(matcher.accepts_bytes("\"a"));
  CHECK(matcher.accepts_bytes("\"b"));
}

TEST_CASE("schemas from outside meet named limits") {
  const auto repeated = [](std::string_view head, std::string_view part, int count,
                           std::string_view tail) {
    std::string text(head);
    for (int i = 0; i < count; ++i) text += (i ? "," : "") + std::string(part);
    return text + std::string(tail);
  };
  // 2^20 alternatives, and a chain of references that doubles at each of 60 places.
  const std::string choice = R"({"anyOf":[{"required":["a"]},{"required":["b"]}]})";
  CHECK(schema_refusal(repeated(R"({"allOf":[)", choice, 20, "]}")).find("limit") !=
        std::string::npos);
  std::string doubling = R"({"$defs":{"d0":{"type":"null"})";
  for (int i = 1; i <= 60; ++i) {
    const std::string ref = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
    doubling += ",\"d" + std::to_string(i) + R"(":{"allOf":[)" + ref + "," + ref + "]}";
  }
  CHECK(schema_refusal(doubling + R"(},"$ref":"#/$defs/d60"})").find("limit") != std::string::npos);
  CHECK(schema_refusal(R"({"type":"string","pattern":"^(a|b)*a(a|b){30}$"})").find("limit") !=
        std::string::npos);
  CHECK(schema_refusal(R"({"type":"string","pattern":"((a{100}){100}){100}"})").find("limit") !=
        std::string::npos);
}

}  // namespace lockstep
