// The keys of one encrypted connection, as one end has them: one for each direction, never used for
// another connection. The handshake derives them.
#pragma once

#include "base/aead.h"

namespace lockstep {

struct LinkKeys {
  AeadCipher cipher = AeadCipher::kAes128Gcm;
  AeadKey send{};
  AeadKey receive{};
};

}  // namespace lockstep
