// A 64-bit hash of text that is the same on every machine (FNV-1a, RFC 9923), for comparing texts
// and detecting torn files. Not secure against adversaries.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// Not negative, so that it fits a JSON integer.
inline int64_t fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<int64_t>(hash & 0x7fffffffffffffffu);
}

}  // namespace lockstep
