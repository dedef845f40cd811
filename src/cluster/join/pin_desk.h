// PinDesk: issues the PINs that machines join with, under limits that make guessing hopeless: eight
// digits, one attempt each, valid for two minutes, three per minute and four at a time. A pure
// function of the times passed in; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

class PinDesk {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kDigits = 8;
  static constexpr std::chrono::seconds kLifetime{120};
  static constexpr std::chrono::seconds kRateWindow{60};
  static constexpr size_t kPerWindow = 3;
  static constexpr size_t kPendingMax = 4;

  struct Pending {
    uint64_t number = 0;
    std::string pin;
    std::string asker;  // the asking machine, for people
    Clock::time_point expires_at;
  };

  // kExhausted if there were too many requests.
  Result<Pending> issue(const std::string& asker, Clock::time_point now);
  // Uses the PIN up: empty at a second call, or after it has expired.
  std::optional<std::string> take(uint64_t number, Clock::time_point now);
  // The asking machine has gone.
  void withdraw(uint64_t number) { pending_.erase(number); }
  // PINs to be shown.
  std::vector<Pending> pending(Clock::time_point now);

 private:
  void forget_expired(Clock::time_point now);

  std::map<uint64_t, Pending> pending_;
  std::deque<Clock::time_point> issued_;  // in the last minute
  uint64_t next_number_ = 1;
};

}  // namespace lockstep
