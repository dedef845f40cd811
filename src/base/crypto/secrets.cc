#include "base/crypto/secrets.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <vector>

#include "base/check.h"
#include "base/hex.h"

namespace lockstep {
namespace {

const unsigned char* secret_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Status fill_random(std::span<std::byte> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    return Error{ErrorCode::kInternal, "the system did not return random numbers"};
  }
  return Ok{};
}

Result<std::string> random_hex(size_t bytes) {
  LOCKSTEP_CHECK(bytes <= kRandomHexBytesMax);
  std::array<std::byte, kRandomHexBytesMax> random{};
  const auto wanted = std::span(random).first(bytes);
  TRY(fill_random(wanted));
  return to_hex(wanted);
}

Result<Digest> hmac_sha256(std::span<const std::byte> key,
                           std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> all;
  for (const auto part : parts) all.insert(all.end(), part.begin(), part.end());
  Digest digest{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), secret_bytes(all), all.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length) == nullptr ||
      length != digest.size()) {
    return Error{ErrorCode::kInternal, "OpenSSL has no HMAC with SHA-256"};
  }
  return digest;
}

Result<Digest> hkdf_sha256(std::span<const std::byte> secret, std::span<const std::byte> salt,
                           std::string_view info) {
  constexpr std::byte kFirstBlock{1};
  const Digest extracted = TRY(hmac_sha256(salt, {secret}));
  return hmac_sha256(extracted,
                     {std::as_bytes(std::span(info)), std::span<const std::byte>(&kFirstBlock, 1)});
}

bool is_same_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= std::to_integer<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

bool is_same_secret(std::string_view a, std::string_view b) {
  return is_same_secret(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

}  // namespace lockstep
