#include "access/control_nonces.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "base/byte_text.h"
#include "base/hex.h"

namespace lockstep {
namespace {

constexpr size_t kTimeDigits = 16;
constexpr size_t kRandomBytes = 16;
constexpr size_t kBeginDigits = kTimeDigits + 2 * kRandomBytes;
constexpr size_t kMacDigits = 64;

}  // namespace

Result<ControlNonces> ControlNonces::create() {
  Digest key{};
  TRY(fill_random(key));
  return ControlNonces(key);
}

ControlNonces::ControlNonces(ControlNonces&& other) noexcept
    : key_(other.key_), used_(std::move(other.used_)) {}

Result<std::string> ControlNonces::make(Clock::time_point now) const {
  const std::string random = TRY(random_hex(kRandomBytes));
  const int64_t time = std::chrono::nanoseconds(now.time_since_epoch()).count();
  const std::string begin = fmt::format("{:016x}{}", static_cast<uint64_t>(time), random);
  return begin + TRY(mac_of(begin));
}

Result<std::string> ControlNonces::mac_of(std::string_view begin) const {
  return to_hex(TRY(hmac_sha256(key_, {bytes_of(begin)})));
}

bool ControlNonces::use(std::string_view nonce, Clock::time_point now) {
  if (!is_hex(nonce, kBeginDigits + kMacDigits)) return false;
  const auto mac = mac_of(nonce.substr(0, kBeginDigits));
  if (!mac.ok() || !is_same_secret(mac.value(), nonce.substr(kBeginDigits))) {
    return false;
  }
  uint64_t time = 0;
  std::from_chars(nonce.data(), nonce.data() + kTimeDigits, time, 16);
  const Clock::time_point made{std::chrono::nanoseconds(static_cast<int64_t>(time))};
  if (now < made || now - made >= kLife) return false;
  const std::lock_guard lock(mutex_);
  std::erase_if(used_, [now](const auto& one) { return one.second <= now; });
  return used_.size() < kUsedMax && used_.emplace(nonce, made + kLife).second;
}

}  // namespace lockstep
