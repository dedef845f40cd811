// KeySessions: browsers whose user has typed an API key. The page trades the key for a cookie that
// no script can read, so that a mistake in the page cannot reveal it. A session is as good as its
// key, no better: it ends with the key, after kSessionLife, and with the node, since sessions are
// only in memory. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

class KeySessions {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr size_t kSessionsMax = 256;
  static constexpr size_t kSessionsOfKeyMax = 16;
  static constexpr std::chrono::hours kSessionLife{7 * 24};

  // Browsers share cookies between all ports of a host, so the port is in the cookie's name; a new
  // start has the same name, so that old cookies do not pile up.
  explicit KeySessions(uint16_t port = 0);
  KeySessions(KeySessions&& other) noexcept;
  // Before the first session.
  void set_port(uint16_t port);

  // The value of Set-Cookie for a new session of the key with this hash. Beyond a maximum the
  // oldest session is dropped: of the same key, then of all. `is_encrypted`: the browser sends it
  // over https only.
  Result<std::string> open(const Digest& key, bool is_encrypted, Clock::time_point now);
  // The hash of the key whose session a Cookie header names.
  std::optional<Digest> key_of(std::string_view cookies, Clock::time_point now) const;
  // Ends the sessions that a Cookie header names; false: there were none.
  bool close(std::string_view cookies);
  // The value of Set-Cookie with which a browser forgets its cookie.
  std::string forgetting() const;

 private:
  struct Session {
    std::string text;
    Digest key{};
    Clock::time_point ends;
  };

  void make_room(const Digest& key, Clock::time_point now);

  std::string cookie_;
  mutable std::mutex mutex_;
  std::vector<Session> sessions_;  // the oldest first
};

}  // namespace lockstep
