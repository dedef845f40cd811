// A 64-bit hash of text that is the same on every machine (FNV-1a, RFC 9923), for comparing texts
// and detecting torn files. Not secure against adversaries.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace lockstep {

// Not negative, so that it fits a JSON integer.
inline int64_t fingerprint(std::string_view text) {
  return static_cast<int64_t>(Fnv().add(text).value() & 0x7fffffffffffffffu);
}

}  // namespace lockstep
