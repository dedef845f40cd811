// TlsIdentity: this node's side of every TLS 1.3 connection, made from its key pair: a self-signed
// Ed25519 certificate, and the settings under which both ends must show one. TLS proves that the
// other end holds the key of its certificate and nothing more; whose key that is, and whether it
// may speak, is decided above (cluster/greeting.h). Any thread; cheap to copy.
#pragma once

#include <memory>

#include "base/key_pair.h"
#include "base/result.h"

namespace lockstep {

class TlsIdentity {
 public:
  struct Impl;  // for net/ alone

  static Result<TlsIdentity> make(const KeyPair& key);
  const PublicKey& public_key() const;
  Impl& impl() const { return *impl_; }

 private:
  explicit TlsIdentity(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
