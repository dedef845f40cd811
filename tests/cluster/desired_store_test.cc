#include "cluster/desired_store.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

DesiredState state_of(std::string name, int64_t time_ms) {
  DesiredEntry entry;
  entry.name = std::move(name);
  entry.stamp.time_ms = time_ms;
  entry.wanted = true;
  DesiredState state;
  state.merge(entry);
  return state;
}

void overwrite(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace

TEST_CASE("what was saved is there after a start, with nothing to note") {
  const TemporaryFolder folder;
  const auto path = std::filesystem::path(folder.path()) / "state";
  auto opened = DesiredStore::open(path);
  REQUIRE(opened.ok());
  CHECK(opened.value().state.entries().empty());
  REQUIRE(opened.value().store.save(state_of("a", 1)).ok());
  REQUIRE(opened.value().store.save(state_of("b", 2)).ok());
  const auto again = DesiredStore::open(path);
  REQUIRE(again.ok());
  CHECK(again.value().state == state_of("b", 2));
  CHECK(again.value().notes.empty());
}

TEST_CASE("a damaged file is named and set aside, and the one before is used") {
  const TemporaryFolder folder;
  const std::filesystem::path path(folder.path());
  {
    auto opened = DesiredStore::open(path);
    REQUIRE(opened.ok());
    REQUIRE(opened.value().store.save(state_of("a", 1)).ok());
    REQUIRE(opened.value().store.save(state_of("b", 2)).ok());
  }
  for (const std::string damage : {"", "lockstep desired state 1 7\n[]\n", "{", "\n"}) {
    overwrite(path / "desired.json", damage);
    auto opened = DesiredStore::open(path);
    REQUIRE(opened.ok());
    CHECK(opened.value().state == state_of("a", 1));
    REQUIRE(opened.value().notes.size() == 2);
    CHECK(opened.value().notes[0].find("desired.json cannot be used") != std::string::npos);
    CHECK(std::filesystem::exists(path / "desired.json.damaged"));
  }
  overwrite(path / "desired.json", "x");
  overwrite(path / "desired.json.previous", "x");
  const auto nothing = DesiredStore::open(path);
  REQUIRE(nothing.ok());
  CHECK(nothing.value().state.entries().empty());
  CHECK(nothing.value().notes.size() == 2);
}

TEST_CASE("a power cut between the two renames loses nothing") {
  const TemporaryFolder folder;
  const std::filesystem::path path(folder.path());
  auto opened = DesiredStore::open(path);
  REQUIRE(opened.ok());
  REQUIRE(opened.value().store.save(state_of("a", 1)).ok());
  std::filesystem::rename(path / "desired.json", path / "desired.json.previous");
  overwrite(path / "desired.json.new", "half");
  const auto again = DesiredStore::open(path);
  REQUIRE(again.ok());
  CHECK(again.value().state == state_of("a", 1));
  CHECK(again.value().notes.empty());
}

TEST_CASE("a folder that cannot be is an error that names it") {
  const TemporaryFolder folder;
  const auto file = std::filesystem::path(folder.path()) / "file";
  overwrite(file, "x");
  const auto opened = DesiredStore::open(file / "state");
  REQUIRE(!opened.ok());
  CHECK(opened.error().message.find("state") != std::string::npos);
}
