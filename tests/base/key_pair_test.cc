#include "base/crypto/key_pair.h"

#include <doctest/doctest.h>

#include <string_view>

#include "base/crypto/hasher.h"
#include "base/crypto/secrets.h"
#include "base/hex.h"
#include "support/text.h"

using namespace lockstep;

TEST_CASE("key_pair: a signature is valid for one key and one message only") {
  const auto key = KeyPair::generate();
  const auto other = KeyPair::generate();
  REQUIRE(key.ok());
  REQUIRE(other.ok());
  CHECK(key.value().public_key() != other.value().public_key());
  auto signature = key.value().sign(bytes_of("a message"));
  REQUIRE(signature.ok());
  CHECK(is_signed_by(key.value().public_key(), bytes_of("a message"), signature.value()));
  CHECK(!is_signed_by(key.value().public_key(), bytes_of("b message"), signature.value()));
  CHECK(!is_signed_by(other.value().public_key(), bytes_of("a message"), signature.value()));
  signature.value()[5] ^= std::byte{1};
  CHECK(!is_signed_by(key.value().public_key(), bytes_of("a message"), signature.value()));
}

TEST_CASE("key_pair: a key survives PEM, and other text is refused") {
  const auto key = KeyPair::generate();
  REQUIRE(key.ok());
  const auto text = key.value().to_pem();
  REQUIRE(text.ok());
  const auto back = KeyPair::from_pem(text.value());
  REQUIRE(back.ok());
  CHECK(back.value().public_key() == key.value().public_key());
  CHECK(KeyPair::from_pem("").error().code == ErrorCode::kCorrupt);
  CHECK(KeyPair::from_pem(text.value().substr(0, 60)).error().code == ErrorCode::kCorrupt);
}

// FIPS 180-4, the example "abc".
TEST_CASE("secrets: SHA-256 over parts equals SHA-256 of the whole") {
  const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(to_hex(sha256(bytes_of("abc"))) == expected);
}

TEST_CASE("hex: digits of both cases are read, anything else is refused") {
  std::array<std::byte, 2> bytes{};
  CHECK(from_hex("0aFf", bytes));
  CHECK(to_hex(bytes) == "0aff");
  CHECK(!from_hex("0af", bytes));
  CHECK(!from_hex("0aff0", bytes));
  CHECK(!from_hex("0agf", bytes));
  CHECK(from_hex("", {}));
  CHECK(to_hex({}).empty());
}
