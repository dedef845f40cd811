#include "json/json_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace lockstep;

TEST_CASE("a file of JSON is read, and an error names it") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("lockstep_json_" + std::to_string(::getpid()) + ".json");
  const auto read = [&](const char* text) {
    std::ofstream(path) << text;
    return read_json_file(path);
  };
  CHECK(dump_json(read("{\"a\": [1]}").value()) == R"({"a":[1]})");
  const auto cut = read("{\"a\":");
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().code == ErrorCode::kCorrupt);
  CHECK(cut.error().message.starts_with(path.string() + ": invalid JSON at byte 5: "));
  std::filesystem::remove(path);
  CHECK(read_json_file(path).error().message == path.string() + " does not exist");
}
