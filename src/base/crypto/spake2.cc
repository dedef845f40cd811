#include "base/crypto/spake2.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/crypto/hasher.h"
#include "base/hex.h"

namespace lockstep {
namespace {

// RFC 9382, section 6: the points M and N of P-256.
constexpr std::string_view kPointM =
    "02886e2f97ace46e55ba9dd7242579f2993b64e16ef3dcab95afd497333d8fa12f";
constexpr std::string_view kPointN =
    "03d8bbd6c639c62937b04d997f38c3770719c629d7014d49a24b4f98baa1292b49";

using Group = std::unique_ptr<EC_GROUP, decltype(&EC_GROUP_free)>;
using Point = std::unique_ptr<EC_POINT, decltype(&EC_POINT_clear_free)>;
using Number = std::unique_ptr<BIGNUM, decltype(&BN_clear_free)>;

const unsigned char* share_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Point new_point(const Group& group) {
  return {EC_POINT_new(group.get()), EC_POINT_clear_free};
}

Number number(std::span<const std::byte> bytes) {
  Number made(BN_bin2bn(share_bytes(bytes), static_cast<int>(bytes.size()), nullptr),
              BN_clear_free);
  if (made) BN_set_flags(made.get(), BN_FLG_CONSTTIME);
  return made;
}

Error library_error() {
  return {ErrorCode::kInternal, "OpenSSL failed to compute with P-256"};
}

// A point that is on the curve and not zero; null otherwise. The curve's order is prime, so there
// are no small subgroups to check.
Point decode(const Group& group, std::span<const std::byte> bytes) {
  Point point = new_point(group);
  if (!point ||
      EC_POINT_oct2point(group.get(), point.get(), share_bytes(bytes), bytes.size(), nullptr) !=
          1 ||
      EC_POINT_is_at_infinity(group.get(), point.get()) == 1) {
    point.reset();
  }
  return point;
}

Point decode_hex(const Group& group, std::string_view hex) {
  std::array<std::byte, 33> bytes{};
  LOCKSTEP_CHECK(from_hex(hex, bytes));
  return decode(group, bytes);
}

Result<Spake2::Share> encode(const Group& group, const Point& point) {
  Spake2::Share share{};
  if (EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED,
                         reinterpret_cast<unsigned char*>(share.data()), share.size(),
                         nullptr) != share.size()) {
    return library_error();
  }
  return share;
}

void append_with_length(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  const uint64_t length = bytes.size();
  for (int byte = 0; byte < 8; ++byte) out.push_back(static_cast<std::byte>(length >> (8 * byte)));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

struct Spake2::Impl {
  Group group{EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), EC_GROUP_free};
  Side side = Side::kA;
  std::string identity_a, identity_b;
  std::vector<std::byte> context;
  Number password{nullptr, BN_clear_free};
  Number secret{nullptr, BN_clear_free};
  Share share{};
  bool is_finished = false;
  Digest own_confirmation{}, other_confirmation{};

  bool is_a() const { return side == Side::kA; }
  Status make_share();
  Result<Share> shared_point(std::span<const std::byte> other_share) const;
  Status derive(std::span<const std::byte> other_share, const Share& point);
};

Result<Spake2> Spake2::start(const Setting& setting, std::string_view password) {
  const Digest low = TRY(hkdf_sha256(bytes_of(password), {}, "lockstep spake2 password 1"));
  const Digest high = TRY(hkdf_sha256(bytes_of(password), {}, "lockstep spake2 password 2"));
  std::array<std::byte, 64>
      wide{};  // reduced from far above the order, so that all values are equally likely
  std::memcpy(wide.data(), low.data(), low.size());
  std::memcpy(wide.data() + low.size(), high.data(), high.size());
  const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), EC_GROUP_free);
  const std::unique_ptr<BN_CTX, decltype(&BN_CTX_free)> work(BN_CTX_new(), BN_CTX_free);
  const Number value = number(wide);
  const Number reduced(BN_new(), BN_clear_free);
  const Number secret(BN_new(), BN_clear_free);
  Scalar password_scalar{}, secret_scalar{};
  if (!group || !work || !value || !reduced || !secret) return library_error();
  const BIGNUM* const order = EC_GROUP_get0_order(group.get());
  if (BN_nnmod(reduced.get(), value.get(), order, work.get()) != 1 ||
      BN_priv_rand_range(secret.get(), order) != 1 ||
      BN_bn2binpad(reduced.get(), reinterpret_cast<unsigned char*>(password_scalar.data()),
                   kScalarBytes) != kScalarBytes ||
      BN_bn2binpad(secret.get(), reinterpret_cast<unsigned char*>(secret_scalar.data()),
                   kScalarBytes) != kScalarBytes) {
    return library_error();
  }
  return start_with(setting, password_scalar, secret_scalar);
}

Result<Spake2> Spake2::start_with(const Setting& setting, const Scalar& password,
                                  const Scalar& secret) {
  auto impl = std::make_unique<Impl>();
  impl->side = setting.side;
  impl->identity_a = setting.identity_a;
  impl->identity_b = setting.identity_b;
  impl->context.assign(setting.context.begin(), setting.context.end());
  impl->password = number(password);
  impl->secret = number(secret);
  if (!impl->group || !impl->password || !impl->secret) return library_error();
  TRY(impl->make_share());
  return Spake2(std::move(impl));
}

// A: x*P + w*M; B: y*P + w*N.
Status Spake2::Impl::make_share() {
  const Point mask_base = decode_hex(group, is_a() ? kPointM : kPointN);
  const Point mask = new_point(group), sum = new_point(group);
  if (!mask_base || !mask || !sum ||
      EC_POINT_mul(group.get(), mask.get(), nullptr, mask_base.get(), password.get(), nullptr) !=
          1 ||
      EC_POINT_mul(group.get(), sum.get(), secret.get(), nullptr, nullptr, nullptr) != 1 ||
      EC_POINT_add(group.get(), sum.get(), sum.get(), mask.get(), nullptr) != 1) {
    return library_error();
  }
  share = TRY(encode(group, sum));
  return Ok{};
}

// A: x*(pB - w*N); B: y*(pA - w*M).
Result<Spake2::Share> Spake2::Impl::shared_point(std::span<const std::byte> other_share) const {
  const Point other = decode(group, other_share);
  if (!other || other_share.size() != kShareBytes) {
    return Error{ErrorCode::kCorrupt, "the other end's share is not a point on P-256"};
  }
  const Point mask_base = decode_hex(group, is_a() ? kPointN : kPointM);
  const Point mask = new_point(group), point = new_point(group);
  if (!mask_base || !mask || !point ||
      EC_POINT_mul(group.get(), mask.get(), nullptr, mask_base.get(), password.get(), nullptr) !=
          1 ||
      EC_POINT_invert(group.get(), mask.get(), nullptr) != 1 ||
      EC_POINT_add(group.get(), mask.get(), mask.get(), other.get(), nullptr) != 1 ||
      EC_POINT_mul(group.get(), point.get(), nullptr, mask.get(), secret.get(), nullptr) != 1) {
    return library_error();
  }
  if (EC_POINT_is_at_infinity(group.get(), point.get()) == 1) {
    return Error{ErrorCode::kCorrupt,
                 "the other end's share is invalid: it leads to the point at infinity"};
  }
  return encode(group, point);
}

// RFC 9382, sections 3.3 and 4: the transcript and the confirmations derived from it.
Status Spake2::Impl::derive(std::span<const std::byte> other_share, const Share& point) {
  std::array<std::byte, kScalarBytes> password_bytes{};
  if (BN_bn2binpad(password.get(), reinterpret_cast<unsigned char*>(password_bytes.data()),
                   kScalarBytes) != kScalarBytes) {
    return library_error();
  }
  const std::span<const std::byte> own(share);
  std::vector<std::byte> transcript;
  append_with_length(transcript, bytes_of(identity_a));
  append_with_length(transcript, bytes_of(identity_b));
  append_with_length(transcript, is_a() ? own : other_share);
  append_with_length(transcript, is_a() ? other_share : own);
  append_with_length(transcript, point);
  append_with_length(transcript, password_bytes);
  const Digest keys = sha256(transcript);
  const auto confirmation_secret = std::span(keys).subspan(16);
  std::string info = "ConfirmationKeys";
  info.append(reinterpret_cast<const char*>(context.data()), context.size());
  const Digest confirmation_keys = TRY(hkdf_sha256(confirmation_secret, {}, info));
  const auto of_a = std::span(confirmation_keys).first(16);
  const auto of_b = std::span(confirmation_keys).subspan(16);
  own_confirmation = TRY(hmac_sha256(is_a() ? of_a : of_b, {transcript}));
  other_confirmation = TRY(hmac_sha256(is_a() ? of_b : of_a, {transcript}));
  is_finished = true;
  return Ok{};
}

Status Spake2::finish(std::span<const std::byte> other_share) {
  const Share point = TRY(impl_->shared_point(other_share));
  return impl_->derive(other_share, point);
}

const Spake2::Share& Spake2::share() const {
  return impl_->share;
}

const Digest& Spake2::confirmation() const {
  LOCKSTEP_CHECK(impl_->is_finished);
  return impl_->own_confirmation;
}

const Digest& Spake2::expected_confirmation() const {
  LOCKSTEP_CHECK(impl_->is_finished);
  return impl_->other_confirmation;
}

Spake2::Spake2(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Spake2::Spake2(Spake2&&) noexcept = default;
Spake2& Spake2::operator=(Spake2&&) noexcept = default;
Spake2::~Spake2() = default;

}  // namespace lockstep
