#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "server/api_keys.h"
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

  const KeyRing ring = KeyRing::open(path).value();
  REQUIRE(ring.find(laptop) != nullptr);
  CHECK(ring.find(laptop)->name == "laptop");
  CHECK(ring.find(phone)->name == "phone");
  CHECK(ring.find(laptop)->id() != ring.find(phone)->id());
  for (const std::string& wrong :
       {std::string(), std::string("lk-"), laptop + "0", laptop.substr(0, laptop.size() - 1),
        std::string("LK-") + laptop.substr(3)}) {
    CHECK(ring.find(wrong) == nullptr);
  }

  CHECK(remove_api_key(path, "laptop").ok());
  CHECK(names_in(path) == Names{"phone"});
  const Status missing = remove_api_key(path, "laptop");
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == "there is no key named laptop; there are phone");
}

TEST_CASE("what lies on the disk is the owner's alone and is no key") {
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

TEST_CASE("names that are taken or make no sense are refused, and so are files of others") {
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
  KeyRing ring = KeyRing::open(path).value();
  CHECK(ring.is_empty());
  const std::string first = add_api_key(path, "first", 1).value();
  CHECK(ring.find(first) == nullptr);
  ring.refresh();
  CHECK(ring.find(first) != nullptr);
  const std::string second = add_api_key(path, "second", 1).value();
  ring.refresh();
  CHECK(ring.find(second) != nullptr);
  REQUIRE(remove_api_key(path, "first").ok());
  ring.refresh();
  CHECK(ring.find(first) == nullptr);
  std::ofstream(path) << "broken";
  ring.refresh();
  CHECK(ring.find(second) != nullptr);
  std::filesystem::remove(path);
  ring.refresh();
  CHECK(ring.is_empty());
}

}  // namespace lockstep
