// The implementation of TlsIdentity, and the peer's key and the secret of a finished TLS session.
// Internal to net/.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

#include "base/crypto/secrets.h"
#include "net/frames/tls_identity.h"

namespace lockstep {

struct TlsIdentity::Impl {
  Impl(SSL_CTX* native, const PublicKey& key) : context(native), public_key(key) {}
  boost::asio::ssl::context context;  // for both ends of connections; owns the SSL_CTX
  PublicKey public_key;
};

// After the handshake. kCorrupt if the peer's certificate is not Ed25519.
Result<PublicKey> peer_key(SSL* session);
// 32 bytes that only the two ends of this session have (RFC 8446, section 7.5).
Result<Digest> session_secret(SSL* session);

}  // namespace lockstep
