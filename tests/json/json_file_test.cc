#include "json/json_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/temporary_folder.h"

using namespace lockstep;

TEST_CASE("a JSON file is read, and an error names it") {
  const TemporaryFolder folder;
  const auto read = [&](const char* text) { return read_json_file(folder.write("a.json", text)); };
  CHECK(dump_json(read("{\"a\": [1]}").value()) == R"({"a":[1]})");
  const auto cut = read("{\"a\":");
  const auto path = folder.path() / "a.json";
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().code == ErrorCode::kCorrupt);
  CHECK(cut.error().message.starts_with(path.string() + ": invalid JSON at byte 5: "));
  std::filesystem::remove(path);
  CHECK(read_json_file(path).error().message == path.string() + " does not exist");
}
