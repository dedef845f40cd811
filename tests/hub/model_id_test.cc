#include "hub/files/model_id.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a model's name, its revision and a file are separated") {
  const auto plain = parse_model_id("Qwen/Qwen3-0.6B");
  REQUIRE(plain.ok());
  CHECK(plain.value().repository == "Qwen/Qwen3-0.6B");
  CHECK(plain.value().revision_or_default() == "main");
  const auto all = parse_model_id("org/name/sub/a-Q4.gguf@refs/pr/1");
  REQUIRE(all.ok());
  CHECK(all.value().repository == "org/name");
  CHECK(all.value().file == "sub/a-Q4.gguf");
  CHECK(all.value().revision == "refs/pr/1");
  CHECK(all.value().text() == "org/name/sub/a-Q4.gguf@refs/pr/1");
}

TEST_CASE("an invalid model name is refused") {
  for (const char* text :
       {"", "/", "name", "/org/name", "./org/name", "../name", "org/", "org/..", "org/na--me",
        "-org/name", "org/name.", "org/na me", "org/name/../x.gguf", "org/name/x.bin", "org/name@",
        "org/name@../x", "org/name@a b", "org/name@/x", "org//x.gguf"}) {
    CAPTURE(text);
    const auto parsed = parse_model_id(text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.error().code == ErrorCode::kInvalidArgument);
  }
  CHECK(!parse_model_id("org/" + std::string(97, 'a')).ok());
  CHECK(parse_model_id("org/" + std::string(96, 'a')).ok());
}

TEST_CASE("a file name stays inside its folder") {
  for (const char* name : {"a", "a/b.json", "..a", "a..b/c", ".gitattributes"})
    CHECK(is_safe_file_name(name));
  for (const char* name : {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "a/./b",
                           "a\\b", "a\nb", "a\x7f"}) {
    CAPTURE(name);
    CHECK(!is_safe_file_name(name));
  }
  CHECK(!is_safe_file_name(std::string_view("a\0b", 3)));
  CHECK(!is_safe_file_name(std::string(256, 'a')));
}
