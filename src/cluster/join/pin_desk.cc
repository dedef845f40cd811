#include "cluster/join/pin_desk.h"

#include <fmt/core.h>

#include <array>
#include <cstring>

#include "base/crypto/secrets.h"

namespace lockstep {
namespace {

constexpr uint64_t kPinCount = 100'000'000;

// The remainder of 64 random bits is uniform to one in 10^11.
Result<std::string> random_pin() {
  std::array<std::byte, 8> bytes{};
  TRY(fill_random(bytes));
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return fmt::format("{:0{}}", value % kPinCount, PinDesk::kDigits);
}

}  // namespace

Result<PinDesk::Pending> PinDesk::issue(const std::string& asker, Clock::time_point now) {
  forget_expired(now);
  if (pending_.size() >= kPendingMax || issued_.size() >= kPerWindow) {
    return Error{ErrorCode::kExhausted,
                 "too many machines are asking to join: try again in a minute"};
  }
  const auto pin = TRY(random_pin());
  const Pending made{next_number_++, pin, asker, now + kLifetime};
  issued_.push_back(now);
  pending_.emplace(made.number, made);
  return made;
}

std::optional<std::string> PinDesk::take(uint64_t number, Clock::time_point now) {
  forget_expired(now);
  const auto found = pending_.find(number);
  if (found == pending_.end()) return std::nullopt;
  std::string pin = std::move(found->second.pin);
  pending_.erase(found);
  return pin;
}

std::vector<PinDesk::Pending> PinDesk::pending(Clock::time_point now) {
  forget_expired(now);
  std::vector<Pending> all;
  for (const auto& [number, one] : pending_) all.push_back(one);
  return all;
}

void PinDesk::forget_expired(Clock::time_point now) {
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.expires_at <= now; });
  while (!issued_.empty() && now - issued_.front() >= kRateWindow) issued_.pop_front();
}

}  // namespace lockstep
