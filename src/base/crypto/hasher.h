// Hasher: SHA-256 or SHA-1 over bytes that arrive in parts. SHA-1 only where a format requires it
// (git's names of files), never for a secret. One thread uses an object.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"

namespace lockstep {

enum class HashKind { kSha1, kSha256 };

class Hasher {
 public:
  explicit Hasher(HashKind kind);
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  // Lower-case hexadecimal digits. Nothing can be added afterwards.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::span<const std::byte> bytes);

}  // namespace lockstep
