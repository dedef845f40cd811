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
  CHECK(made.is(made.text()));
  CHECK(!made.is(""));
  CHECK(!made.is(made.text().substr(1)));
  CHECK(!made.is(made.text() + "0"));
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

TEST_CASE("a proof is valid for one secret, one nonce and one port only") {
  const TemporaryFolder folder;
  const ControlSecret secret = ControlSecret::open(folder.path() / "a").value();
  const ControlSecret other = ControlSecret::open(folder.path() / "b").value();
  const std::string nonce(64, 'a');
  const std::string proof = secret.proof(nonce, 8600).value();
  CHECK(proof == secret.proof(nonce, 8600).value());
  CHECK(proof != secret.proof(nonce, 8601).value());
  CHECK(proof != secret.proof(std::string(64, 'b'), 8600).value());
  CHECK(proof != other.proof(nonce, 8600).value());
  CHECK(proof.find(secret.text()) == std::string::npos);
  CHECK(ControlSecret::is_nonce(nonce));
  CHECK(!ControlSecret::is_nonce(nonce + "a"));
  CHECK(!ControlSecret::is_nonce(""));
}

}  // namespace lockstep
