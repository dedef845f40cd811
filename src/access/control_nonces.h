// ControlNonces: the numbers with which a caller proves one request (access/control_secret.h), each
// accepted once and only for a short time. A number carries its time and a MAC of this process, so
// that asking for one costs no memory; the used ones are kept until they expire, and only holders
// of the secret use any. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

class ControlNonces {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds kLife{30};
  static constexpr size_t kUsedMax = 4096;  // beyond it none is accepted until some expire

  static Result<ControlNonces> create();
  ControlNonces(ControlNonces&& other) noexcept;

  Result<std::string> make(Clock::time_point now) const;
  // Whether it is one of ours that has neither expired nor been used; it is used from now on.
  bool use(std::string_view nonce, Clock::time_point now);

 private:
  explicit ControlNonces(Digest key) : key_(key) {}

  Result<std::string> mac_of(std::string_view begin) const;

  Digest key_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point, std::less<>> used_;  // with their ends
};

}  // namespace lockstep
