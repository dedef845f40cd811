// The keys of one encrypted connection, as seen from one end: one per direction, never reused for
// another connection. The handshake derives them.
#pragma once

#include "base/crypto/aead.h"

namespace lockstep {

struct LinkKeys {
  AeadCipher cipher = AeadCipher::kAes128Gcm;
  AeadKey send{};
  AeadKey receive{};
};

}  // namespace lockstep
