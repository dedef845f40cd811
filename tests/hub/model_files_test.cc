#include "hub/files/model_files.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the list of a download reads back unchanged") {
  const ModelFiles files{.commit = std::string(40, 'c'),
                         .files = {{.name = "a.safetensors",
                                    .size = 1234567890123,
                                    .hash_kind = HashKind::kSha256,
                                    .hash = std::string(64, 'd')},
                                   {.name = "sub/b.json",
                                    .size = 0,
                                    .hash_kind = HashKind::kSha1,
                                    .hash = std::string(40, 'e')}}};
  const auto read = parse_model_files(dump_model_files(files));
  REQUIRE(read.ok());
  CHECK(read.value().commit == files.commit);
  CHECK(read.value().total_bytes() == 1234567890123);
  REQUIRE(read.value().files.size() == 2);
  CHECK(read.value().files[0].hash == files.files[0].hash);
  CHECK(read.value().files[1].hash_kind == HashKind::kSha1);
  CHECK(read.value().files[1].name == "sub/b.json");
}

TEST_CASE("a small file's hash is git's") {
  // `printf 'hello\n' | git hash-object --stdin` and `git hash-object /dev/null`
  Hasher hello = hasher_for({.name = "x", .size = 6, .hash_kind = HashKind::kSha1});
  hello.add("hel");
  hello.add("lo\n");
  CHECK(hello.finish_hex() == "ce013625030ba8dba906f756967f9e9ca394464a");
  CHECK(hasher_for({.name = "x", .size = 0, .hash_kind = HashKind::kSha1}).finish_hex() ==
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  CHECK(Hasher(HashKind::kSha256).finish_hex() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a list that cannot be used is refused with a sentence") {
  const std::string commit = R"({"sha": ")" + std::string(40, 'c') + '"';
  const std::string file = commit + R"(, "siblings": [{"rfilename": "a", "size": )";
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"sha": "x"})"),
        commit + "}", commit + R"(, "siblings": [5]})", file + "-1}]}", file + "1e30}]}"}) {
    CAPTURE(text);
    const auto read = parse_model_files(text);
    REQUIRE(!read.ok());
    CHECK(read.error().code == ErrorCode::kCorrupt);
  }
}
