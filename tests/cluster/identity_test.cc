#include "cluster/identity.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files/private_file.h"
#include "support/temporary_folder.h"

using namespace lockstep;
namespace fs = std::filesystem;

TEST_CASE("identity: a node keeps its key, its name and its cluster") {
  const TemporaryFolder folder;
  const fs::path home = folder.path() / "home";
  auto first = Identity::open(home, "anna");
  REQUIRE(first.ok());
  CHECK(!first.value().cluster());
  REQUIRE(first.value().found_cluster().ok());
  const auto again = Identity::open(home);
  REQUIRE(again.ok());
  CHECK(again.value().id() == first.value().id());
  CHECK(again.value().name() == "anna");
  REQUIRE(again.value().cluster());
  CHECK(*again.value().cluster() == *first.value().cluster());
  CHECK(fs::status(home).permissions() == fs::perms::owner_all);
  for (const char* name : {"node_key.pem", "cluster_key", "name"}) {
    CHECK(fs::status(home / name).permissions() ==
          (fs::perms::owner_read | fs::perms::owner_write));
  }
}

TEST_CASE("identity: two nodes have different ids, and an id has one text form") {
  const TemporaryFolder folder;
  const auto a = Identity::open(folder.path() / "a", "a");
  const auto b = Identity::open(folder.path() / "b", "b");
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a.value().id() != b.value().id());
  CHECK((a.value().id() < b.value().id()) == (a.value().id().text() < b.value().id().text()));
  CHECK(NodeId::parse(a.value().id().text()) == a.value().id());
  CHECK(a.value().id().text().starts_with(a.value().id().short_text()));
  CHECK(!NodeId::parse(a.value().id().short_text()));
  CHECK(!NodeId::parse(""));
  CHECK(!NodeId::parse(std::string(64, 'g')));
}

TEST_CASE("identity: a key that is invalid or readable by others is refused with advice") {
  const TemporaryFolder folder;
  const fs::path home = folder.path() / "home";
  REQUIRE(Identity::open(home, "anna").ok());
  fs::permissions(home / "node_key.pem", fs::perms::group_read, fs::perm_options::add);
  auto readable = Identity::open(home);
  REQUIRE(!readable.ok());
  CHECK(readable.error().message.find("chmod 600") != std::string::npos);
  REQUIRE(replace_private_file(home / "node_key.pem", "no key").ok());
  auto corrupt = Identity::open(home);
  REQUIRE(!corrupt.ok());
  CHECK(corrupt.error().code == ErrorCode::kCorrupt);
  CHECK(corrupt.error().message.find("node_key.pem") != std::string::npos);
  fs::remove(home / "node_key.pem");
  REQUIRE(replace_private_file(home / "cluster_key", "12").ok());
  CHECK(Identity::open(home).error().code == ErrorCode::kCorrupt);
  fs::remove(home / "cluster_key");
  CHECK(Identity::open(home).ok());
  fs::permissions(home, fs::perms::others_exec, fs::perm_options::add);
  CHECK(Identity::open(home).error().message.find("chmod 700") != std::string::npos);
}

TEST_CASE("identity: a node is in one cluster until it leaves") {
  const TemporaryFolder folder;
  auto node = Identity::open(folder.path() / "home", "anna");
  REQUIRE(node.ok());
  REQUIRE(node.value().found_cluster().ok());
  const ClusterKey own = *node.value().cluster();
  CHECK(node.value().join_cluster(own).ok());
  const auto other = ClusterKey::generate();
  CHECK(node.value().join_cluster(other.value()).error().code == ErrorCode::kInvalidArgument);
  CHECK(*node.value().cluster() == own);
  const auto known = node.value().cluster_folder();
  std::filesystem::create_directory(known);
  std::ofstream(known / "desired.json") << "{}";
  REQUIRE(node.value().leave_cluster().ok());
  CHECK(!std::filesystem::exists(known));
  CHECK(node.value().join_cluster(other.value()).ok());
  CHECK(*Identity::open(folder.path() / "home").value().cluster() == other.value());
  CHECK(own.id() != other.value().id());
}

TEST_CASE("identity: a name is text that fits a line") {
  const TemporaryFolder folder;
  CHECK(is_node_name("Annas Mac"));
  CHECK(is_node_name(std::string(63, 'a')));
  CHECK(!is_node_name(std::string(64, 'a')));
  CHECK(!is_node_name(""));
  CHECK(!is_node_name("a\nb"));
  CHECK(!is_node_name("\xff"));
  CHECK(Identity::open(folder.path() / "home", "a\nb").error().code == ErrorCode::kInvalidArgument);
  const auto unnamed = Identity::open(folder.path() / "other");
  REQUIRE(unnamed.ok());
  CHECK(is_node_name(unnamed.value().name()));
}

TEST_CASE("private_file: a file is created once, and replaced atomically") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
  CHECK(read_private_file(path).error().code == ErrorCode::kNotFound);
  CHECK(create_private_file(path, "one").value());
  CHECK(!create_private_file(path, "two").value());
  CHECK(read_private_file(path).value() == "one");
  REQUIRE(replace_private_file(path, "").ok());
  CHECK(read_private_file(path).value().empty());
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++count;
  CHECK(count == 1);  // no temporary file is left
}

// Only root can give files away.
TEST_CASE("private_file: a file of another user is refused with advice") {
  if (::geteuid() != 0) {
    MESSAGE("left out: only root can give files away");
    return;
  }
  constexpr uid_t kSomebody = 12345;
  const TemporaryFolder folder;
  const fs::path home = folder.path() / "home";
  REQUIRE(Identity::open(home, "anna").ok());
  REQUIRE(::chown(home.c_str(), kSomebody, kSomebody) == 0);
  const auto refused = Identity::open(home);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message ==
        home.string() +
            " belongs to user 12345 and this process runs as user 0: start lockstep as " +
            "that user, or set LOCKSTEP_HOME to a folder that this one owns");
  CHECK(!make_private_folder(home).ok());
  REQUIRE(::chown(home.c_str(), 0, 0) == 0);
  CHECK(Identity::open(home).ok());
}

TEST_CASE("private_file: another user's file is refused, and root can read any") {
  if (::geteuid() != 0) {
    MESSAGE("left out: only root can give files away");
    return;
  }
  constexpr uid_t kSomebody = 12345, kOther = 12346;
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  const fs::path path = folder.path() / "file";
  REQUIRE(replace_private_file(path, "one").ok());
  REQUIRE(::chown(path.c_str(), kOther, kOther) == 0);
  CHECK(read_private_file(path).value() == "one");
  // The permission bits alone would allow it; only the check of the owner refuses.
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  REQUIRE(::seteuid(kSomebody) == 0);
  const auto read = read_private_file(path);
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(!read.ok());
  CHECK(read.error().message == path.string() + " belongs to user 12346: run chown 12345 on it");
}

TEST_CASE("private_file: a secret is read without the white space that an editor adds") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "token";
  CHECK(read_secret_file(path).error().code == ErrorCode::kNotFound);
  REQUIRE(replace_private_file(path, " \n lk-1\r\n").ok());
  CHECK(read_secret_file(path).value() == "lk-1");
  REQUIRE(::chmod(path.c_str(), 0640) == 0);  // as a systemd credential may have
  CHECK(read_secret_file(path).value() == "lk-1");
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  CHECK(read_secret_file(path).error().message.find("chmod 600") != std::string::npos);
  REQUIRE(replace_private_file(path, " \n").ok());
  CHECK(read_secret_file(path).error().message ==
        path.string() + " is empty: write the secret into it");
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);  // without a writer
  CHECK(read_secret_file(path).error().message.find("is not a regular file") != std::string::npos);
}
