#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "access/api_keys.h"
#include "base/files/unique_fd.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> names_in(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const std::vector<ApiKey> keys = read_api_keys(path).value();
  for (const ApiKey& key : keys) names.push_back(key.name);
  return names;
}

using Names = std::vector<std::string>;

bool has(const KeyRing& ring, const std::string& text) {
  return find_key(*ring.keys(), text) != nullptr;
}

}  // namespace

TEST_CASE("a key is made, known by its text alone, and removed") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  CHECK(read_api_keys(path).value().empty());
  const std::string laptop = add_api_key(path, "laptop", 1'700'000'000).value();
  const std::string phone = add_api_key(path, "phone", 1'700'000'001).value();
  CHECK(laptop.size() == kApiKeyPrefix.size() + 64);
  CHECK(laptop.starts_with(kApiKeyPrefix));
  CHECK(laptop != phone);
  CHECK(names_in(path) == Names{"laptop", "phone"});
  CHECK(read_api_keys(path).value()[0].created_s == 1'700'000'000);

  const std::vector<ApiKey> keys = read_api_keys(path).value();
  REQUIRE(find_key(keys, laptop) != nullptr);
  CHECK(find_key(keys, laptop)->name == "laptop");
  CHECK(find_key(keys, phone)->name == "phone");
  CHECK(find_key(keys, laptop)->id() != find_key(keys, phone)->id());
  for (const std::string& wrong :
       {std::string(), std::string("lk-"), laptop + "0", laptop.substr(0, laptop.size() - 1),
        std::string("LK-") + laptop.substr(3)}) {
    CHECK(find_key(keys, wrong) == nullptr);
  }

  CHECK(remove_api_key(path, "laptop").ok());
  CHECK(names_in(path) == Names{"phone"});
  const Status missing = remove_api_key(path, "laptop");
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == "there is no key named laptop; the keys are phone");
}

TEST_CASE("the key file is private to its owner and does not contain the key") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(path, "a", 1).value();
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  const std::string content = content_of(path);
  CHECK(content.find(key) == std::string::npos);
  CHECK(content.find(key.substr(kApiKeyPrefix.size())) == std::string::npos);
}

TEST_CASE("taken or invalid names are refused, and so are files of other users") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  REQUIRE(add_api_key(path, "a", 1).ok());
  CHECK(add_api_key(path, "a", 1).error().code == ErrorCode::kInvalidArgument);
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\n"),
                                  std::string(kApiKeyNameBytesMax + 1, 'a')}) {
    CHECK(add_api_key(path, name, 1).error().code == ErrorCode::kInvalidArgument);
  }
  CHECK(add_api_key(path, std::string(kApiKeyNameBytesMax, 'b'), 1).ok());
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(read_api_keys(path).error().code == ErrorCode::kInvalidArgument);
  CHECK(!KeyRing::open(path).ok());
  for (const char* text : {"", "[]", R"({"keys":5})", R"({"keys":[{"name":"a"}]})",
                           R"({"keys":[{"name":"a","sha256":"00"}]})"}) {
    CAPTURE(text);
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    CHECK(read_api_keys(path).error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a ring follows its file, and keeps its keys when the file is broken") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const KeyRing ring = std::move(KeyRing::open(path).value());
  CHECK(ring.keys()->empty());
  const std::string first = add_api_key(path, "first", 1).value();
  REQUIRE(comes_true([&] { return has(ring, first); }));
  const std::string second = add_api_key(path, "second", 1).value();
  REQUIRE(comes_true([&] { return has(ring, second); }));
  const auto before = ring.keys();
  REQUIRE(remove_api_key(path, "first").ok());
  REQUIRE(comes_true([&] { return !has(ring, first); }));
  CHECK(before->size() == 2);  // a reader keeps the old set
  std::ofstream(path) << "broken";
  CHECK(has(ring, second));
  std::filesystem::remove(path);
  REQUIRE(comes_true([&] { return ring.keys()->empty(); }));
}

// A FIFO that blocks its reader stands for a disk that does not respond.
TEST_CASE("a ring whose disk hangs keeps its keys and is destroyed at once") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(path, "a", 1).value();
  {
    const KeyRing ring = std::move(KeyRing::open(path).value());
    std::filesystem::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(has(ring, key));
  }
  const UniqueFd writer(::open(path.c_str(), O_RDWR | O_NONBLOCK));  // unblocks the thread
}

TEST_CASE("a key that was made elsewhere is accepted unchanged, also a second time") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = "lk-" + std::string(64, 'a');
  CHECK(take_api_key(path, "all", key, 1).ok());
  CHECK(take_api_key(path, "all", key, 2).ok());
  const std::vector<ApiKey> keys = read_api_keys(path).value();
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].created_s == 1);
  CHECK(find_key(keys, key) != nullptr);
  CHECK(!take_api_key(path, "all", "lk-" + std::string(64, 'b'), 1).ok());
  for (const std::string& text : {std::string(), std::string("password"), std::string(64, 'a'),
                                  key + "a", "lk-" + std::string(64, 'A')}) {
    CHECK_MESSAGE(!take_api_key(path, "b", text, 1).ok(), text);
  }
}

}  // namespace lockstep
