#include "net/frames/tls_identity.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <string_view>
#include <utility>

#include "net/frames/tls_identity_impl.h"

namespace lockstep {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Settings = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

constexpr std::string_view kExporterLabel = "EXPORTER-lockstep-session";

// Only the key matters: names and dates would only cause failures on machines with a wrong clock.
// 99991231235959Z is RFC 5280's date for "no end".
Certificate make_certificate(EVP_PKEY* key) {
  Certificate certificate(X509_new(), X509_free);
  X509* const made = certificate.get();
  if (made == nullptr || X509_set_version(made, 2) != 1 ||
      ASN1_INTEGER_set(X509_get_serialNumber(made), 1) != 1 ||
      ASN1_TIME_set_string(X509_getm_notBefore(made), "19700101000000Z") != 1 ||
      ASN1_TIME_set_string(X509_getm_notAfter(made), "99991231235959Z") != 1 ||
      X509_set_pubkey(made, key) != 1 ||
      X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("lockstep"), -1, -1,
                                 0) != 1 ||
      X509_set_issuer_name(made, X509_get_subject_name(made)) != 1 ||
      X509_sign(made, key, nullptr) == 0) {
    certificate.reset();
  }
  return certificate;
}

// Instead of a chain to an authority: one certificate with an Ed25519 key. The handshake's own
// signature proves that the peer holds the key.
int accept_ed25519(X509_STORE_CTX* store, void*) {
  X509* const certificate = X509_STORE_CTX_get0_cert(store);
  EVP_PKEY* const key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate);
  const bool is_good = key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
  X509_STORE_CTX_set_error(store, is_good ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
  return is_good ? 1 : 0;
}

Settings make_settings(EVP_PKEY* key) {
  const Certificate certificate = make_certificate(key);
  Settings settings(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  SSL_CTX* const made = settings.get();
  if (!certificate || made == nullptr || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set1_sigalgs_list(made, "ed25519") != 1 ||
      SSL_CTX_use_certificate(made, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(made, key) != 1 || SSL_CTX_set_num_tickets(made, 0) != 1) {
    settings.reset();
    return settings;
  }
  // Every session does a full handshake: sessions are never resumed, so recorded data is useless.
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                             SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(made, accept_ed25519, nullptr);
  SSL_CTX_set_max_cert_list(made, 4096);
  return settings;
}

}  // namespace

Result<TlsIdentity> TlsIdentity::make(const KeyPair& key) {
  Settings settings = make_settings(key.native());
  if (!settings) {
    return Error{ErrorCode::kUnsupported, "OpenSSL lacks TLS 1.3 with Ed25519 certificates"};
  }
  return TlsIdentity(std::make_shared<Impl>(settings.release(), key.public_key()));
}

const PublicKey& TlsIdentity::public_key() const {
  return impl_->public_key;
}

Result<PublicKey> peer_key(SSL* session) {
  const Certificate certificate(SSL_get1_peer_certificate(session), X509_free);
  EVP_PKEY* const key = certificate ? X509_get0_pubkey(certificate.get()) : nullptr;
  PublicKey bytes{};
  size_t length = bytes.size();
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(bytes.data()), &length) !=
          1 ||
      length != bytes.size()) {
    return Error{ErrorCode::kCorrupt, "the other end has no Ed25519 certificate"};
  }
  return bytes;
}

Result<Digest> session_secret(SSL* session) {
  Digest secret{};
  if (SSL_export_keying_material(session, reinterpret_cast<unsigned char*>(secret.data()),
                                 secret.size(), kExporterLabel.data(), kExporterLabel.size(),
                                 nullptr, 0, 0) != 1) {
    return Error{ErrorCode::kInternal, "OpenSSL exported no secret of the session"};
  }
  return secret;
}

}  // namespace lockstep
