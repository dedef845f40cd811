#include "base/crypto/aead.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/hex.h"

using namespace lockstep;

namespace {

std::vector<std::byte> repeated(size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

constexpr AeadCipher kCiphers[] = {AeadCipher::kAes128Gcm, AeadCipher::kChaCha20Poly1305};
constexpr std::byte kHeader[16] = {std::byte{1}, std::byte{2}};

}  // namespace

TEST_CASE("AES-GCM agrees with its specification") {
  // The GCM specification's test case 2: a zero key, number and block.
  auto sealer = AeadSealer::open(AeadCipher::kAes128Gcm, {});
  REQUIRE(sealer.ok());
  auto block = repeated(16, 0);
  const AeadTag tag = sealer.value().seal(0, {}, block);
  CHECK(to_hex(block) == "0388dace60b6a392f328c2b971b2fe78");
  CHECK(to_hex(tag) == "ab6e47d42cec13bdf53a67b21257bddf");
}

TEST_CASE("sealed data is opened again, in place and in any order of numbers") {
  AeadKey key;
  REQUIRE(fill_random(key).ok());
  for (const AeadCipher cipher : kCiphers) {
    auto sealer = std::move(AeadSealer::open(cipher, key).value());
    auto opener = std::move(AeadOpener::open(cipher, key).value());
    for (const size_t bytes : {size_t{1}, size_t{15}, size_t{16}, size_t{100'001}}) {
      for (const uint64_t number : {uint64_t{5}, uint64_t{0}, ~uint64_t{0}}) {
        auto message = repeated(bytes, 7);
        const AeadTag tag = sealer.seal(number, kHeader, message);
        if (bytes > 1) CHECK(message != repeated(bytes, 7));
        REQUIRE(opener.unseal(number, kHeader, message, tag));
        CHECK(message == repeated(bytes, 7));
      }
    }
  }
}

TEST_CASE("a changed bit, header, number, tag or key is detected") {
  AeadKey key{}, other_key{};
  other_key[3] = std::byte{1};
  for (const AeadCipher cipher : kCiphers) {
    auto sealer = std::move(AeadSealer::open(cipher, key).value());
    auto opener = std::move(AeadOpener::open(cipher, key).value());
    auto stranger = std::move(AeadOpener::open(cipher, other_key).value());
    auto sealed = repeated(100, 7);
    const AeadTag tag = sealer.seal(3, kHeader, sealed);
    for (const size_t byte : {size_t{0}, size_t{63}, size_t{99}}) {
      auto changed = sealed;
      changed[byte] ^= std::byte{0x10};
      CHECK_FALSE(opener.unseal(3, kHeader, changed, tag));
    }
    std::byte header[16] = {std::byte{1}, std::byte{3}};
    AeadTag bad_tag = tag;
    bad_tag[15] ^= std::byte{1};
    auto copy = sealed;
    CHECK_FALSE(opener.unseal(3, header, copy, tag));
    CHECK_FALSE(opener.unseal(4, kHeader, copy = sealed, tag));
    CHECK_FALSE(opener.unseal(3, kHeader, copy = sealed, bad_tag));
    CHECK_FALSE(stranger.unseal(3, kHeader, copy = sealed, tag));
    CHECK(opener.unseal(3, kHeader, copy = sealed, tag));
  }
}

TEST_CASE("keys are derived as in RFC 4231 and RFC 5869") {
  const auto text = [](std::string_view view) { return std::as_bytes(std::span(view)); };
  CHECK(
      to_hex(hmac_sha256(text("Jefe"), {text("what do ya "), text("want for nothing?")}).value()) ==
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string salt("\0\1\2\3\4\5\6\7\10\11\12\13\14", 13);
  const std::string info("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9", 10);
  CHECK(to_hex(hkdf_sha256(repeated(22, 0x0b), text(salt), info).value()) ==
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST_CASE("random bytes differ and secrets are compared in full") {
  Digest a{}, b{};
  REQUIRE(fill_random(a).ok());
  REQUIRE(fill_random(b).ok());
  CHECK_FALSE(is_same_secret(a, b));
  CHECK(is_same_secret(a, a));
  CHECK_FALSE(is_same_secret(a, std::span(a).first(31)));
}

TEST_CASE("random digits have the wanted number and differ") {
  const auto first = random_hex(32);
  const auto second = random_hex(32);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(is_hex(first.value(), 64));
  CHECK(first.value() != second.value());
  const auto none = random_hex(0);
  REQUIRE(none.ok());
  CHECK(none.value().empty());
}
