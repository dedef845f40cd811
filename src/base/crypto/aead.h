// Authenticated encryption of messages (AEAD), in place, by OpenSSL. A key seals each message with
// its own number; the tag covers the number, a header that stays readable, and the message. Nothing
// here allocates after construction. One thread uses an object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

struct evp_cipher_ctx_st;  // OpenSSL's EVP_CIPHER_CTX

namespace lockstep {

enum class AeadCipher : uint32_t {
  kAes128Gcm,         // if the processor has instructions for AES
  kChaCha20Poly1305,  // otherwise
};

using AeadKey = std::array<std::byte, 32>;  // AES-128 uses the first half
using AeadTag = std::array<std::byte, 16>;

// Whether this processor has instructions for AES.
bool has_fast_aes();

class AeadContext {
 public:
  AeadContext(AeadContext&&) noexcept;
  AeadContext& operator=(AeadContext&&) noexcept;
  ~AeadContext();

 protected:
  AeadContext() = default;
  static Result<AeadContext> open(AeadCipher cipher, const AeadKey& key, bool seals);
  // The number and the header are processed before the message.
  bool start(uint64_t number, std::span<const std::byte> header);

  evp_cipher_ctx_st* context_ = nullptr;
};

class AeadSealer : private AeadContext {
 public:
  static Result<AeadSealer> open(AeadCipher cipher, const AeadKey& key);
  // Encrypts `message` in place. A number must never be used twice with a key.
  AeadTag seal(uint64_t number, std::span<const std::byte> header, std::span<std::byte> message);

 private:
  explicit AeadSealer(AeadContext context) : AeadContext(std::move(context)) {}
};

class AeadOpener : private AeadContext {
 public:
  static Result<AeadOpener> open(AeadCipher cipher, const AeadKey& key);
  // Decrypts `message` in place; false if anything differs from what was sealed, and the message is
  // then worthless.
  [[nodiscard]] bool unseal(uint64_t number, std::span<const std::byte> header,
                            std::span<std::byte> message, AeadTag tag);

 private:
  explicit AeadOpener(AeadContext context) : AeadContext(std::move(context)) {}
};

}  // namespace lockstep
