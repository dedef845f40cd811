#include "base/crypto/hasher.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "base/hex.h"

namespace lockstep {

struct Hasher::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Hasher::Hasher(HashKind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* type = kind == HashKind::kSha1 ? EVP_sha1() : EVP_sha256();
  LOCKSTEP_CHECK(EVP_DigestInit_ex(state_->context.get(), type, nullptr) == 1);
}

Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::add(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Hasher::finish_hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  LOCKSTEP_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length) == 1);
  return to_hex(std::as_bytes(std::span(digest)).first(length));
}

Digest sha256(std::span<const std::byte> bytes) {
  Digest digest{};
  unsigned length = 0;
  LOCKSTEP_CHECK(EVP_Digest(bytes.data(), bytes.size(),
                            reinterpret_cast<unsigned char*>(digest.data()), &length, EVP_sha256(),
                            nullptr) == 1);
  LOCKSTEP_CHECK(length == digest.size());
  return digest;
}

}  // namespace lockstep
