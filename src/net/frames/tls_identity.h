// TlsIdentity: this node's side of every TLS 1.3 connection, made from its key pair: a self-signed
// Ed25519 certificate, and the settings under which both ends must show one. TLS proves only that
// the peer holds the key of its certificate; whose key that is, and whether it is trusted, is
// decided above (cluster/discovery/greeting.h). Any thread; cheap to copy.
#pragma once

#include <memory>

#include "base/crypto/key_pair.h"
#include "base/result.h"

namespace lockstep {

class TlsIdentity {
 public:
  struct Impl;  // internal to net/

  static Result<TlsIdentity> make(const KeyPair& key);
  const PublicKey& public_key() const;
  Impl& impl() const { return *impl_; }

 private:
  explicit TlsIdentity(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
