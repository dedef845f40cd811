#include "chat/tools/schema_types.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep {
namespace {

// A schema whose part "a" is a union of `count` references to itself.
Json union_of_itself(size_t count) {
  std::string references;
  for (size_t i = 0; i < count; ++i) {
    references += std::string(i > 0 ? "," : "") + R"({"$ref":"#/$defs/a"})";
  }
  return parse_json(R"({"properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[)" +
                    references + "]}}}")
      .value();
}

JsonTypes types_of(const std::string& schema, const std::string& root = "{}") {
  const Json parsed = parse_json(root).value();
  return SchemaTypes(parsed).of(parse_json(schema).value());
}

}  // namespace

TEST_CASE("types of schemas: declared, listed, referenced and combined") {
  CHECK(types_of(R"({"type":"integer"})") == kJsonInteger);
  CHECK(types_of(R"({"type":["string","null"]})") == (kJsonString | kJsonNull));
  CHECK(types_of(R"({"enum":["a",1]})") == (kJsonString | kJsonInteger));
  CHECK(types_of(R"({"const":1.5})") == kJsonFraction);
  CHECK(types_of(R"({"anyOf":[{"type":"string"},{"type":"array"}]})") ==
        (kJsonString | kJsonArray));
  CHECK(types_of(R"({"allOf":[{"type":["string","null"]},{"type":["string","array"]}]})") ==
        kJsonString);
  CHECK(types_of(R"({"type":"string","const":1})") == kJsonAny);
  const std::string root = R"({"$defs":{"n":{"type":"number"},"m":{"$ref":"#/$defs/n"}}})";
  CHECK(types_of(R"({"$ref":"#/$defs/m"})", root) == (kJsonInteger | kJsonFraction));
  CHECK(types_of(R"({"$ref":"#/$defs/none"})", root) == kJsonAny);
  CHECK(types_of(R"({"type":"string","$ref":"#/$defs/none"})", root) == kJsonString);
}

TEST_CASE("a recursive schema is visited a few times, not exponentially often") {
  constexpr size_t kCount = 1'000;
  const Json any = union_of_itself(kCount);
  SchemaTypes types(any);
  CHECK(types.of(*find(*find(any, "properties"), "p")) == kJsonAny);
  CHECK(types.steps() < 20 * kCount);
}

TEST_CASE("a union in which every reference adds a type is visited once per depth") {
  constexpr size_t kCount = 300;
  std::string all;
  for (size_t i = 0; i < kCount; ++i) {
    all += std::string(i > 0 ? "," : "") + R"({"$ref":"#/$defs/a"},{"type":"string"})";
  }
  const Json root =
      parse_json(R"({"$defs":{"a":{"type":"string","allOf":[)" + all + "]}}}").value();
  SchemaTypes types(root);
  CHECK(types.of(parse_json(R"({"$ref":"#/$defs/a"})").value()) == kJsonString);
  CHECK(types.steps() < 20 * 2 * kCount);
}

TEST_CASE("a union is left as soon as the rest can add nothing") {
  std::string rest;
  for (int i = 0; i < 1'000; ++i) rest += R"(,{"type":"string"})";
  const Json root = parse_json("{}").value();
  SchemaTypes types(root);
  CHECK(types.of(parse_json(R"({"anyOf":[{})" + rest + "]}").value()) == kJsonAny);
  CHECK(types.steps() == 2);
}

}  // namespace lockstep
