#include "chat/constraints/plain_schema.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

std::string plain(std::string_view schema) {
  return dump_json(plain_schema(parse_json(schema).value()));
}

}  // namespace

TEST_CASE("a plain schema has no annotations for people, at any depth") {
  CHECK(
      plain(R"({"title":"T","type":"object","properties":{"a":{"description":"D","type":"null"}},
                 "items":[{"default":1}],"anyOf":[{"examples":[1]}],"not":{"$comment":"c"}})") ==
      R"({"type":"object","properties":{"a":{"type":"null"}},"items":[{}],"anyOf":[{}],"not":{}})");
}

TEST_CASE("keys and values that are called like annotations stay") {
  const std::string schema =
      R"({"properties":{"title":{"enum":[{"default":1}]},"default":{}},"const":{"title":"x"},)"
      R"("required":["title"],"$defs":{"description":true}})";
  CHECK(plain(schema) == schema);
}

TEST_CASE("JSON that is not a schema stays as it is") {
  CHECK(plain("true") == "true");
  CHECK(plain(R"({"properties":5,"anyOf":{},"items":null})") ==
        R"({"properties":5,"anyOf":{},"items":null})");
}

}  // namespace lockstep
