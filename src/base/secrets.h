// Secrets shared by two ends: random bytes, and what is derived from them. The names of the
// functions are those of their RFCs. Used for set-up only; base/aead.h is for data. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/result.h"

namespace lockstep {

using Digest = std::array<std::byte, 32>;

// From the operating system, fit for keys.
Status fill_random(std::span<std::byte> bytes);

// HMAC-SHA256 (RFC 2104) over the parts one after the other. kInternal if the library refuses.
Result<Digest> hmac_sha256(std::span<const std::byte> key,
                           std::initializer_list<std::span<const std::byte>> parts);

// HKDF-SHA256 (RFC 5869), the first 32 bytes of its output.
Result<Digest> hkdf_sha256(std::span<const std::byte> secret, std::span<const std::byte> salt,
                           std::string_view info);

// Looks at all bytes, so that the time taken does not tell how many were right.
bool is_same_secret(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace lockstep
