#include "access/control_secret.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace lockstep {
namespace {

constexpr uid_t kOtherUser = 65534;

}  // namespace

TEST_CASE("a secret is made once, is private to its owner and persists") {
  const TemporaryFolder folder;
  const auto home = folder.path() / "home";
  CHECK(ControlSecret::read(home).error().code == ErrorCode::kNotFound);
  const ControlSecret made = ControlSecret::open(home).value();
  CHECK(made.text().size() == 64);
  CHECK(ControlSecret::open(home).value().text() == made.text());
  CHECK(ControlSecret::read(home).value().text() == made.text());
  struct stat facts {};
  REQUIRE(::stat((home / kControlSecretFile).c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(ControlSecret::open(folder.path() / "other").value().text() != made.text());
}

TEST_CASE("a secret that is invalid or readable by others is refused with advice") {
  const TemporaryFolder folder;
  const auto home = folder.path() / "home";
  REQUIRE(ControlSecret::open(home).ok());
  const auto path = home / kControlSecretFile;
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(ControlSecret::open(home).error().message.find("chmod 600") != std::string::npos);
  std::ofstream(path) << "short\n";
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  CHECK(ControlSecret::open(home).error().code == ErrorCode::kCorrupt);
  CHECK(ControlSecret::read(home).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a folder of another user is refused") {
  if (::geteuid() != 0) return;
  const TemporaryFolder folder;
  const auto home = folder.path() / "home";
  REQUIRE(ControlSecret::open(home).ok());
  REQUIRE(::chown(home.c_str(), kOtherUser, kOtherUser) == 0);
  const auto refused = ControlSecret::open(home);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("belongs to user") != std::string::npos);
  CHECK(ControlSecret::read(home).ok());  // root may read any user's files
}

TEST_CASE("a header is that of one request to one port, with one secret") {
  const TemporaryFolder folder;
  const ControlSecret secret = ControlSecret::open(folder.path() / "a").value();
  const ControlSecret other = ControlSecret::open(folder.path() / "b").value();
  const std::string hash = ControlSecret::body_hash_of("{}");
  const std::string header = secret.header({8600, "POST", "/a?b", hash, "nonce"}).value();
  CHECK(ControlSecret::nonce_in(header) == "nonce");
  CHECK(ControlSecret::body_hash_in(header) == hash);
  CHECK(header.find(secret.text()) == std::string::npos);
  CHECK(secret.is_header_of(header, 8600, "POST", "/a?b"));
  CHECK(!secret.is_header_of(header, 8601, "POST", "/a?b"));
  CHECK(!secret.is_header_of(header, 8600, "GET", "/a?b"));
  CHECK(!secret.is_header_of(header, 8600, "POST", "/a"));
  CHECK(!other.is_header_of(header, 8600, "POST", "/a?b"));
  std::string with_other_body = header;
  with_other_body.replace(header.find(hash), hash.size(), ControlSecret::body_hash_of("[]"));
  CHECK(!secret.is_header_of(with_other_body, 8600, "POST", "/a?b"));
  for (const char* text : {"", " ", "  ", "a b", "a b c d"}) {
    CHECK(!secret.is_header_of(text, 8600, "POST", "/a?b"));
  }
}

TEST_CASE("a proof is valid for one secret, one nonce and one port only") {
  const TemporaryFolder folder;
  const ControlSecret secret = ControlSecret::open(folder.path() / "a").value();
  const ControlSecret other = ControlSecret::open(folder.path() / "b").value();
  const std::string nonce(64, 'a');
  const std::string proof = secret.proof(nonce, "n", 8600).value();
  CHECK(proof == secret.proof(nonce, "n", 8600).value());
  CHECK(proof != secret.proof(nonce, "n", 8601).value());
  CHECK(proof != secret.proof(nonce, "m", 8600).value());
  CHECK(proof != secret.proof(std::string(64, 'b'), "n", 8600).value());
  CHECK(proof != other.proof(nonce, "n", 8600).value());
  CHECK(proof.find(secret.text()) == std::string::npos);
  CHECK(ControlSecret::is_nonce(nonce));
  CHECK(!ControlSecret::is_nonce(nonce + "a"));
  CHECK(!ControlSecret::is_nonce(""));
}

}  // namespace lockstep
