#include "base/crypto/key_pair.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <utility>

namespace lockstep {
namespace {

using KeyHandle = std::shared_ptr<EVP_PKEY>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

KeyHandle own(EVP_PKEY* key) {
  return {key, EVP_PKEY_free};
}

unsigned char* raw_out(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

const unsigned char* key_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// A key file has no pass phrase: no one is there to type it.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

Result<KeyPair> KeyPair::generate() {
  KeyHandle key = own(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return Error{ErrorCode::kInternal, "OpenSSL could not create an Ed25519 key"};
  return adopt(std::move(key));
}

Result<KeyPair> KeyPair::from_pem(std::string_view text) {
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  if (!bio) return Error{ErrorCode::kInternal, "OpenSSL is out of memory"};
  KeyHandle key = own(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
    return Error{ErrorCode::kCorrupt, "this is not an Ed25519 private key in PEM"};
  }
  return adopt(std::move(key));
}

Result<KeyPair> KeyPair::adopt(std::shared_ptr<evp_pkey_st> key) {
  KeyPair pair(std::move(key));
  size_t length = pair.public_key_.size();
  if (EVP_PKEY_get_raw_public_key(pair.key_.get(), raw_out(pair.public_key_), &length) != 1 ||
      length != pair.public_key_.size()) {
    return Error{ErrorCode::kInternal, "OpenSSL did not return a public key"};
  }
  return pair;
}

Result<std::string> KeyPair::to_pem() const {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  char* text = nullptr;
  if (!bio ||
      PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Error{ErrorCode::kInternal, "OpenSSL could not write PEM"};
  }
  const auto length = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(length));
}

Result<Signature> KeyPair::sign(std::span<const std::byte> message) const {
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  Signature signature{};
  size_t length = signature.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), raw_out(signature), &length, key_bytes(message),
                     message.size()) != 1 ||
      length != signature.size()) {
    return Error{ErrorCode::kInternal, "OpenSSL could not sign"};
  }
  return signature;
}

bool is_signed_by(const PublicKey& key, std::span<const std::byte> message,
                  const Signature& signature) {
  const KeyHandle handle =
      own(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key_bytes(key), key.size()));
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return handle && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
         EVP_DigestVerify(context.get(), key_bytes(signature), signature.size(), key_bytes(message),
                          message.size()) == 1;
}

}  // namespace lockstep
