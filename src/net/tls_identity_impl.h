// What stands behind TlsIdentity, and the facts that a finished TLS session has about its other
// end. For the sources of net/ alone.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

#include "base/secrets.h"
#include "net/tls_identity.h"

namespace lockstep {

struct TlsIdentity::Impl {
  Impl(SSL_CTX* native, const PublicKey& key) : context(native), public_key(key) {}
  boost::asio::ssl::context context;  // for both ends of connections; owns the SSL_CTX
  PublicKey public_key;
};

// After the handshake. kCorrupt if the other end's certificate is no Ed25519 one.
Result<PublicKey> peer_key(SSL* session);
// 32 bytes that both ends of this session have and nobody else (RFC 8446, section 7.5).
Result<Digest> session_secret(SSL* session);

}  // namespace lockstep
