// Schemas, regexes and grammars of clients. Those of the first table cost in proportion to their
// text or are refused; those of the second cost far more than their text, and all of it must be
// charged.
#include <fmt/format.h>

#include "grammar/automaton/matcher.h"
#include "grammar/ebnf.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/json_schema.h"
#include "growth/probe.h"
#include "support/colliding_keys.h"

namespace lockstep {
namespace {

using Shape = std::function<std::string(size_t)>;

bool compiles_schema(const std::string& text) {
  Grammar grammar;
  const Json schema = parse_large_json(text).value();
  JsonSchemaOptions options;
  options.is_strict = false;
  const auto built = add_json_schema(grammar, schema, options);
  return built.ok() && compile_grammar(grammar, built.value().expression).ok();
}

bool compiles_regex(const std::string& text) {
  Grammar grammar;
  const auto built = add_regex(grammar, text);
  return built.ok() && compile_grammar(grammar, built.value()).ok();
}

bool compiles_ebnf(const std::string& text) {
  Grammar grammar;
  const auto built = add_ebnf(grammar, text);
  return built.ok() && compile_grammar(grammar, built.value()).ok();
}

Probe schema(std::string shape, size_t size, Shape text) {
  return text_probe("schema: " + std::move(shape), size, std::move(text), compiles_schema);
}

Probes schemas() {
  return {
      schema("an enum of words", 500,
             [](size_t n) { return R"({"enum":[)" + numbered(n, "\"word@\"") + "]}"; }),
      schema("an enum of characters", 500,
             [](size_t n) { return R"({"enum":[")" + chinese_letters(n, "", "\",\"") + "\"]}"; }),
      schema("an enum of numbers", 100,
             [](size_t n) { return R"({"enum":[)" + numbered(n, "@") + "]}"; }),
      schema("constants to choose from", 150,
             [](size_t n) { return R"({"anyOf":[)" + numbered(n, R"({"const":"word@"})") + "]}"; }),
      schema("properties", 200,
             [](size_t n) {
               return R"({"type":"object","properties":{)" +
                      numbered(n, R"("p@":{"type":"string"})") + "}}";
             }),
      schema("properties whose names collide", 150,
             [](size_t n) {
               const auto names = murmur_collisions(n);
               return R"({"type":"object","properties":{)" +
                      listed(n, ",", [&](size_t i) { return '"' + names[i] + R"(":{})"; }) + "}}";
             }),
      schema("required properties", 200,
             [](size_t n) {
               return R"({"type":"object","properties":{)" + numbered(n, R"("p@":{})") +
                      R"(},"required":[)" + numbered(n, "\"p@\"") + "]}";
             }),
      schema("one long key", 2000,
             [](size_t n) {
               return R"({"type":"object","properties":{")" + repeated("k", n) + R"(":{}}})";
             }),
      schema("keys of characters", 300,
             [](size_t n) {
               return R"({"type":"object","properties":{")" + chinese_letters(n, "", R"(":{},")") +
                      R"(":{}}})";
             }),
      schema("items", 200,
             [](size_t n) { return R"({"prefixItems":[)" + numbered(n, R"({"const":@})") + "]}"; }),
      schema("objects in objects", 7,
             [](size_t n) {
               return repeated(R"({"type":"object","properties":{"a":)", n) + "{}" +
                      repeated("}}", n);
             }),
      schema("references", 300,
             [](size_t n) {
               return R"({"type":"object","properties":{)" +
                      numbered(n, R"("p@":{"$ref":"#/$defs/d@"})") + R"(},"$defs":{)" +
                      numbered(n, R"("d@":{"type":"integer"})") + "}}";
             }),
      schema("keywords that are not enforced", 300,
             [](size_t n) {
               return R"({"type":"object","properties":{)" +
                      numbered(n, R"("p@":{"type":"string","format":"form@"})") + "}}";
             }),
      schema("keywords that nobody knows", 2000,
             [](size_t n) { return R"({"type":"object",)" + numbered(n, R"("x@":1)") + "}"; }),
      schema("patterns of keys", 10,
             [](size_t n) {
               return R"({"type":"object","patternProperties":{)" + numbered(n, R"("^p@$":{})") +
                      "}}";
             }),
      schema(
          "a long pattern", 300,
          [](size_t n) { return R"({"type":"string","pattern":"^)" + repeated("ab", n) + "$\"}"; }),
  };
}

Probes texts() {
  return {
      text_probe(
          "regex: letters", 1000, [](size_t n) { return repeated("a", n); }, compiles_regex),
      text_probe(
          "regex: alternatives", 200, [](size_t n) { return numbered(n, "w@|", "") + "x"; },
          compiles_regex),
      text_probe(
          "regex: optional letters", 50, [](size_t n) { return repeated("a?", n); },
          compiles_regex),
      text_probe(
          "regex: classes", 100, [](size_t n) { return repeated("[a-z0-9_]", n); }, compiles_regex),
      text_probe(
          "regex: open groups", 1000, [](size_t n) { return repeated("(", n); }, compiles_regex),
      text_probe(
          "regex: a long class", 1000,
          [](size_t n) { return "[" + chinese_letters(n, "a", "") + "]"; }, compiles_regex),
      text_probe(
          "ebnf: rules", 300,
          [](size_t n) {
            return "root ::= r0\n" +
                   listed(n, "",
                          [](size_t i) { return fmt::format("r{} ::= \"a\" r{}\n", i, i + 1); }) +
                   fmt::format("r{} ::= \"b\"\n", n);
          },
          compiles_ebnf),
      text_probe(
          "ebnf: alternatives", 500,
          [](size_t n) { return "root ::= \"a\"" + repeated(" | \"b\"", n); }, compiles_ebnf),
      text_probe(
          "ebnf: distinct classes", 200,
          [](size_t n) { return "root ::= [" + chinese_letters(n, "", "] | [") + "]"; },
          compiles_ebnf),
      text_probe(
          "ebnf: comments after names", 200,
          [](size_t n) { return "root ::= a" + repeated(" a #  x\n", n) + "\na ::= \"a\""; },
          compiles_ebnf),
      text_probe(
          "ebnf: a long text", 5000,
          [](size_t n) { return "root ::= \"" + repeated("a", n) + "\""; }, compiles_ebnf),
  };
}

Probes matchers() {
  return {
      {"matcher: a string of a schema", 1500,
       [](size_t n) -> Reading {
         Grammar grammar;
         const Json any = parse_json(R"({"type":"object"})").value();
         const auto built = add_json_schema(grammar, any, {});
         const auto compiled = compile_grammar(grammar, built.value().expression);
         return [compiled = compiled.value(), text = R"({"a":")" + repeated("word ", n) + "\"}"] {
           Matcher matcher(compiled);
           return matcher.accept_bytes(text) && matcher.may_end();
         };
       }},
      {"matcher: members of an object", 300,
       [](size_t n) -> Reading {
         Grammar grammar;
         const auto compiled = compile_grammar(grammar, add_json_object(grammar));
         return [compiled = compiled.value(), text = "{" + numbered(n, "\"k@\":[1,2]") + "}"] {
           Matcher matcher(compiled);
           return matcher.accept_bytes(text) && matcher.may_end();
         };
       }},
  };
}

}  // namespace

Probes grammar_probes() {
  Probes all;
  for (const auto& part : {schemas(), texts(), matchers()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lockstep
