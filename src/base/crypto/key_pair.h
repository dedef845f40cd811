// KeyPair: an Ed25519 key (RFC 8032) that signs; its public half identifies the signer. Used for a
// node's identity: its certificate (net/frames/tls_identity.h) and its beacons. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace lockstep {

using PublicKey = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;

class KeyPair {
 public:
  static Result<KeyPair> generate();
  // PKCS #8 in PEM, without a pass phrase. kCorrupt if the text is anything else.
  static Result<KeyPair> from_pem(std::string_view text);
  Result<std::string> to_pem() const;

  const PublicKey& public_key() const { return public_key_; }
  Result<Signature> sign(std::span<const std::byte> message) const;

  evp_pkey_st* native() const { return key_.get(); }  // for net/ only; we keep ownership

 private:
  explicit KeyPair(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  static Result<KeyPair> adopt(std::shared_ptr<evp_pkey_st> key);

  std::shared_ptr<evp_pkey_st> key_;  // immutable
  PublicKey public_key_{};
};

bool is_signed_by(const PublicKey& key, std::span<const std::byte> message,
                  const Signature& signature);

}  // namespace lockstep
