// SPAKE2 over P-256 with SHA-256, HKDF and HMAC (RFC 9382): two ends that know the same short
// password find out that they do, and whoever sits between them, or at one end, has one guess for
// each run and learns nothing to guess with afterwards. Used once for each PIN of a join
// (cluster/join_frames.h). The points are OpenSSL's. One thread uses an object.
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

#include "base/result.h"
#include "base/secrets.h"

namespace lockstep {

class Spake2 {
 public:
  static constexpr size_t kShareBytes = 65;  // an uncompressed point
  static constexpr size_t kScalarBytes = 32;
  using Share = std::array<std::byte, kShareBytes>;
  using Scalar = std::array<std::byte, kScalarBytes>;

  enum class Side { kA, kB };
  struct Setting {  // what both ends must have said alike
    Side side = Side::kA;
    std::string_view identity_a;
    std::string_view identity_b;
    std::span<const std::byte> context;  // "AAD" of the RFC: what the run is bound to
  };

  // The password becomes a number by HKDF; a PIN that is valid for one run needs no slow hash.
  static Result<Spake2> start(const Setting& setting, std::string_view password);
  // With both secret numbers given: for the test vectors of the RFC.
  static Result<Spake2> start_with(const Setting& setting, const Scalar& password,
                                   const Scalar& secret);

  Spake2(Spake2&&) noexcept;
  Spake2& operator=(Spake2&&) noexcept;
  ~Spake2();

  const Share& share() const;
  // Takes the other end's share; kCorrupt if it is no point of the curve.
  Status finish(std::span<const std::byte> other_share);
  // After finish(): what to send, and what the other end must send.
  const Digest& confirmation() const;
  const Digest& expected_confirmation() const;

 private:
  struct Impl;
  explicit Spake2(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
