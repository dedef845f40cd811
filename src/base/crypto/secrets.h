// Secrets shared by two ends: random bytes and derived keys. Functions are named as in their RFCs.
// Used only for set-up; base/crypto/aead.h is for data. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

using Digest = std::array<std::byte, 32>;

// From the operating system, fit for keys.
Status fill_random(std::span<std::byte> bytes);
// The hex digits of that many random bytes, at most kRandomHexBytesMax.
inline constexpr size_t kRandomHexBytesMax = 64;
Result<std::string> random_hex(size_t bytes);

// HMAC-SHA256 (RFC 2104) over the concatenated parts. kInternal if the library fails.
Result<Digest> hmac_sha256(std::span<const std::byte> key,
                           std::initializer_list<std::span<const std::byte>> parts);

// HKDF-SHA256 (RFC 5869), the first 32 bytes of its output.
Result<Digest> hkdf_sha256(std::span<const std::byte> secret, std::span<const std::byte> salt,
                           std::string_view info);

// Compares all bytes, so that the time does not reveal how many were equal.
bool is_same_secret(std::span<const std::byte> a, std::span<const std::byte> b);
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace lockstep
