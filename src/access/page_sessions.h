// PageSessions: the browsers that have control on the page. `lockstep page` uses the control
// secret to get a code, and prints an address with it; the first browser that opens it gets a
// session, identified by a cookie that scripts cannot read. Codes and sessions are only in memory,
// limited in number, and expire. Any thread.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

class PageSessions {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr size_t kCodesMax = 8;
  static constexpr size_t kSessionsMax = 16;
  static constexpr std::chrono::minutes kCodeLife{10};
  static constexpr std::chrono::hours kSessionLife{12};

  static Result<PageSessions> create();
  PageSessions(PageSessions&& other) noexcept;

  // Beyond the maximum the oldest one is dropped, here and below.
  Result<std::string> make_code(Clock::time_point now);
  // Uses up a code and returns the value of Set-Cookie; kNotFound for an invalid code.
  Result<std::string> open(std::string_view code, Clock::time_point now);
  // Whether a Cookie header names a session.
  bool has(std::string_view cookies, Clock::time_point now) const;

 private:
  struct Secret {
    std::string text;
    Clock::time_point ends;
  };

  explicit PageSessions(std::string cookie) : cookie_(std::move(cookie)) {}

  std::string cookie_;  // unique name: browsers share cookies between all ports of a host
  mutable std::mutex mutex_;
  std::vector<Secret> codes_, sessions_;  // the oldest first
};

}  // namespace lockstep
