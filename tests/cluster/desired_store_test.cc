#include "cluster/state/desired_store.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

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

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace

TEST_CASE("saved state is loaded at the next start, without a note") {
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

TEST_CASE("a damaged file is named and set aside, and the previous one is used") {
  const TemporaryFolder folder;
  const std::filesystem::path path(folder.path());
  {
    auto opened = DesiredStore::open(path);
    REQUIRE(opened.ok());
    REQUIRE(opened.value().store.save(state_of("a", 1)).ok());
    REQUIRE(opened.value().store.save(state_of("b", 2)).ok());
  }
  const std::string damages[] = {"", "lockstep desired state 1 7\n[]\n", "{", "\n"};
  for (const std::string& damage : damages) {
    overwrite(path / "desired.json", damage);
    auto opened = DesiredStore::open(path);
    REQUIRE(opened.ok());
    CHECK(opened.value().state == state_of("a", 1));
    REQUIRE(opened.value().notes.size() == 2);
    CHECK(opened.value().notes[0].find("desired.json cannot be used") != std::string::npos);
  }
  // Each damaged file is kept under its own name.
  CHECK(text_of(path / "desired.json.damaged") == damages[0]);
  for (int number = 2; number <= 4; ++number) {
    CHECK(text_of(path / ("desired.json.damaged." + std::to_string(number))) ==
          damages[number - 1]);
  }
  overwrite(path / "desired.json", "x");
  overwrite(path / "desired.json.previous", "x");
  const auto nothing = DesiredStore::open(path);
  REQUIRE(nothing.ok());
  CHECK(nothing.value().state.entries().empty());
  CHECK(nothing.value().notes.size() == 3);
  CHECK(nothing.value().notes[2].find("starts without models") != std::string::npos);
  CHECK(text_of(path / "desired.json.damaged.5") == "x");
  CHECK(text_of(path / "desired.json.previous.damaged") == "x");
}

TEST_CASE("a pipe in place of the file is set aside without waiting for its writer") {
  const TemporaryFolder folder;
  const std::filesystem::path path(folder.path());
  REQUIRE(::mkfifo((path / "desired.json").c_str(), 0600) == 0);
  const auto opened = DesiredStore::open(path);
  REQUIRE(opened.ok());
  CHECK(opened.value().notes.size() == 2);
  CHECK(std::filesystem::is_fifo(path / "desired.json.damaged"));
}

TEST_CASE("a state that cannot be read is not a damaged one: the node does not start without it") {
  const TemporaryFolder folder;
  const std::filesystem::path path(folder.path());
  // Even root cannot open a link to itself.
  std::filesystem::create_symlink("desired.json", path / "desired.json");
  const auto opened = DesiredStore::open(path);
  REQUIRE(!opened.ok());
  CHECK(opened.error().message.find("cannot read") == 0);
  CHECK(std::filesystem::is_symlink(path / "desired.json"));
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

TEST_CASE("a folder that cannot be made is an error that names it") {
  const TemporaryFolder folder;
  const auto file = std::filesystem::path(folder.path()) / "file";
  overwrite(file, "x");
  const auto opened = DesiredStore::open(file / "state");
  REQUIRE(!opened.ok());
  CHECK(opened.error().message.find("state") != std::string::npos);
}
