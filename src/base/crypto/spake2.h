// SPAKE2 over P-256 with SHA-256, HKDF and HMAC (RFC 9382): two ends verify that they know the same
// short password; an attacker between them, or at one end, has one guess per run and learns nothing
// for later guesses. Used once for each PIN of a join (cluster/join/join_frames.h). The points are
// OpenSSL's. One thread uses an object.
//
//   A: start -> share A ->  B: start -> share B -> A: finish -> confirmation A -> B: finish,
//   checks, confirmation B -> A checks
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

class Spake2 {
 public:
  static constexpr size_t kShareBytes = 65;  // an uncompressed point
  static constexpr size_t kScalarBytes = 32;
  using Share = std::array<std::byte, kShareBytes>;
  using Scalar = std::array<std::byte, kScalarBytes>;

  enum class Side { kA, kB };
  struct Setting {  // must be the same at both ends
    Side side = Side::kA;
    std::string_view identity_a;
    std::string_view identity_b;
    std::span<const std::byte> context;  // "AAD" of the RFC: binds the run to it
  };

  // HKDF turns the password into a number; a PIN valid for one run needs no slow hash.
  static Result<Spake2> start(const Setting& setting, std::string_view password);
  // With both secret numbers given: for the test vectors of the RFC.
  static Result<Spake2> start_with(const Setting& setting, const Scalar& password,
                                   const Scalar& secret);

  Spake2(Spake2&&) noexcept;
  Spake2& operator=(Spake2&&) noexcept;
  ~Spake2();

  const Share& share() const;
  // Takes the other end's share; kCorrupt if it is not a point on the curve.
  Status finish(std::span<const std::byte> other_share);
  // After finish(): the confirmation to send, and the one to expect from the other end.
  const Digest& confirmation() const;
  const Digest& expected_confirmation() const;

 private:
  struct Impl;
  explicit Spake2(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
