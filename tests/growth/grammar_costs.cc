// A few kilobytes from a client that would cost seconds to compile unless each step is charged
// where it is done.
#include <fmt/format.h>

#include <map>

#include "grammar/ebnf.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/json_schema.h"
#include "growth/probe.h"

namespace lockstep {
namespace {

template <class Add>
int64_t steps_of(int64_t steps_max, Add&& add) {
  Grammar grammar{WorkBudget(steps_max)};
  auto built = add(grammar);
  if (built.ok()) (void)compile_grammar(grammar, built.value());
  return grammar.budget().spent();
}

CostProbe schema_cost(std::string name, const std::string& text) {
  return {"cost: " + std::move(name), [text](int64_t steps_max) {
            return steps_of(steps_max, [&](Grammar& grammar) -> Result<Grammar::Expression> {
              static std::map<std::string, Json> parsed;
              if (!parsed.contains(text)) parsed.emplace(text, parse_large_json(text).value());
              JsonSchemaOptions options;
              options.is_strict = false;
              return TRY(add_json_schema(grammar, parsed.at(text), options)).expression;
            });
          }};
}

CostProbe regex(std::string name, const std::string& text) {
  return {"cost: " + std::move(name), [text](int64_t steps_max) {
            return steps_of(steps_max, [&](Grammar& grammar) { return add_regex(grammar, text); });
          }};
}

CostProbe ebnf(std::string name, const std::string& text) {
  return {"cost: " + std::move(name), [text](int64_t steps_max) {
            return steps_of(steps_max, [&](Grammar& grammar) { return add_ebnf(grammar, text); });
          }};
}

// Each of `count` properties has this schema.
std::string each_property(size_t count, std::string_view one) {
  return R"({"type":"object","properties":{)" + numbered(count, one) + "}}";
}

std::string enum_often(size_t members, size_t times) {
  return R"({"allOf":[)" + repeated(R"({"$ref":"#/$defs/e"},)", times) +
         R"({"type":"string"}],"$defs":{"e":{"enum":[")" + chinese_letters(members, "", "\",\"") +
         "\"]}}}";
}

std::string one_of_objects(size_t objects, size_t keys) {
  return R"({"oneOf":[)" +
         listed(objects, ",",
                [keys](size_t which) {
                  return fmt::format(R"({{"type":"object","properties":{{"kind{}":{{}},)", which) +
                         numbered(keys, R"("k@":{})") + "}}";
                }) +
         "]}";
}

}  // namespace

std::vector<CostProbe> cost_probes() {
  const std::string nested_constants =
      R"({"const":)" + repeated("[", 50) + repeated("1,", 3000) + "1" + repeated("]", 50) + "}";
  const std::string long_name(3000, 'a');
  return {
      schema_cost("an enum of characters in allOf", enum_often(9000, 240)),
      schema_cost("oneOf of objects with many keys", one_of_objects(6, 8'000)),
      schema_cost(
          "oneOf of many alternatives",
          R"({"oneOf":[)" + repeated(R"({"type":"null"},)", 3000) + R"({"type":"string"}]})"),
      schema_cost(
          "anyOf of many alternatives",
          R"({"anyOf":[)" + repeated(R"({"type":"null"},)", 20'000) + R"({"type":"string"}]})"),
      schema_cost(
          "allOf of many objects",
          R"({"allOf":[)" + repeated(R"({"properties":{}},)", 20'000) + R"({"type":"object"}]})"),
      schema_cost("an enum of numbers", R"({"enum":[)" + numbered(20'000, "@") + "]}"),
      schema_cost("an enum of objects",
                  R"({"enum":[)" + numbered(200, R"({"a":{"b":{"c":@}}})") + "]}"),
      schema_cost("a constant of arrays in arrays", nested_constants),
      schema_cost("bounds of many digits",
                  each_property(2000, R"("p@":{"minimum":123456789012345678})")),
      schema_cost("multiples", each_property(2000, R"("p@":{"multipleOf":4999})")),
      schema_cost("patterns with a length",
                  each_property(
                      2000, R"("p@":{"type":"string","pattern":"^[a-z]{0,390}$","minLength":3})")),
      schema_cost("patterns of many states",
                  each_property(500, R"("p@":{"type":"string","pattern":"(a|b)*a(a|b){10}x@"})")),
      schema_cost("patterns that overlap",
                  R"({"type":"object","patternProperties":{)" + numbered(40, R"("a@":{})") + "}}"),
      schema_cost("formats that nobody knows", each_property(10'000, R"("p@":{"format":"f@"})")),
      schema_cost(
          "formats that are known",
          each_property(2000, R"("p@":{"type":"string","format":"date-time","minLength":2})")),
      schema_cost("long strings",
                  each_property(500, R"("p@":{"type":"string","pattern":"a","minLength":9999})")),
      schema_cost("long references",
                  R"({"properties":{)" +
                      numbered(200, "\"p@\":{\"$ref\":\"#/$defs/" + long_name + "\"}") +
                      R"(},"$defs":{")" + long_name + R"(":{"type":"null"}}})"),
      schema_cost("counted properties", R"({"type":"object","minProperties":20,"properties":{)" +
                                            numbered(2000, R"("k@":{})") + "}}"),
      schema_cost("keys of characters", R"({"type":"object","properties":{")" +
                                            chinese_letters(20'000, "", R"(":{},")") + R"(":{}}})"),
      regex("properties of Unicode", "[" + repeated("\\p{L}", 3000) + "]"),
      regex("repeated properties of Unicode", "(\\p{L}?){3000}"),
      regex("optional letters", repeated("a?", 3000)),
      regex("alternatives that begin alike", repeated("a{0,50}b|", 200) + "c"),
      regex("many states", "(a|b)*a(a|b){13}"),
      regex("empty repetitions", "(((()*)*)*){9000}"),
      ebnf("distinct classes", "root ::= [" + chinese_letters(20'000, "", "] | [") + "]"),
      ebnf("long classes", "root ::= [" + chinese_letters(20'000, "", "a") + "] \"b\""),
      ebnf("alternatives", "root ::= \"a\"" + repeated(" | \"b\"", 20'000)),
      ebnf("counted groups", "root ::= " + repeated("(\"a\"{1,9}){2,9} ", 5000)),
  };
}

}  // namespace lockstep
