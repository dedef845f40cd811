#include "base/crypto/aead.h"

#include <openssl/evp.h>

#include <cstring>

#ifdef __linux__
#include <sys/auxv.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#endif

#include "base/check.h"

namespace lockstep {
namespace {

unsigned char* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

bool has_fast_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes");
#elif defined(__aarch64__) && defined(__linux__)
  return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  return true;
#else
  return false;
#endif
}

AeadContext::AeadContext(AeadContext&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)) {}

AeadContext& AeadContext::operator=(AeadContext&& other) noexcept {
  std::swap(context_, other.context_);
  return *this;
}

AeadContext::~AeadContext() {
  EVP_CIPHER_CTX_free(context_);
}

// Both ciphers use 12-byte nonces, the default of a fresh context.
Result<AeadContext> AeadContext::open(AeadCipher cipher, const AeadKey& key, bool seals) {
  AeadContext made;
  made.context_ = EVP_CIPHER_CTX_new();
  const EVP_CIPHER* const type =
      cipher == AeadCipher::kAes128Gcm ? EVP_aes_128_gcm() : EVP_chacha20_poly1305();
  if (!made.context_ ||
      EVP_CipherInit_ex(made.context_, type, nullptr, raw(key), nullptr, seals ? 1 : 0) != 1) {
    return Error{ErrorCode::kUnsupported, "OpenSSL lacks the cipher that encrypts links"};
  }
  return made;
}

bool AeadContext::start(uint64_t number, std::span<const std::byte> header) {
  unsigned char nonce[12] = {};
  std::memcpy(nonce + 4, &number, sizeof(number));
  int length = 0;
  return EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, nonce, -1) == 1 &&
         EVP_CipherUpdate(context_, nullptr, &length, raw(header),
                          static_cast<int>(header.size())) == 1;
}

Result<AeadSealer> AeadSealer::open(AeadCipher cipher, const AeadKey& key) {
  return AeadSealer(TRY(AeadContext::open(cipher, key, true)));
}

AeadTag AeadSealer::seal(uint64_t number, std::span<const std::byte> header,
                         std::span<std::byte> message) {
  AeadTag tag{};
  int length = 0, rest = 0;
  const bool is_sealed = start(number, header) &&
                         EVP_CipherUpdate(context_, raw(message), &length, raw(message),
                                          static_cast<int>(message.size())) == 1 &&
                         EVP_CipherFinal_ex(context_, raw(message) + length, &rest) == 1 &&
                         EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG,
                                             static_cast<int>(tag.size()), tag.data()) == 1;
  LOCKSTEP_CHECK(is_sealed);  // sealing has no input that could be invalid
  return tag;
}

Result<AeadOpener> AeadOpener::open(AeadCipher cipher, const AeadKey& key) {
  return AeadOpener(TRY(AeadContext::open(cipher, key, false)));
}

bool AeadOpener::unseal(uint64_t number, std::span<const std::byte> header,
                        std::span<std::byte> message, AeadTag tag) {
  int length = 0, rest = 0;
  return start(number, header) &&
         EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag.size()),
                             tag.data()) == 1 &&
         EVP_CipherUpdate(context_, raw(message), &length, raw(message),
                          static_cast<int>(message.size())) == 1 &&
         EVP_CipherFinal_ex(context_, raw(message) + length, &rest) == 1;
}

}  // namespace lockstep
