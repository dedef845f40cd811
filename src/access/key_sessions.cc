#include "access/key_sessions.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "access/own_page.h"

namespace lockstep {
namespace {

constexpr size_t kSessionBytes = 32;

}  // namespace

KeySessions::KeySessions(uint16_t port) {
  set_port(port);
}

KeySessions::KeySessions(KeySessions&& other) noexcept
    : cookie_(std::move(other.cookie_)), sessions_(std::move(other.sessions_)) {}

void KeySessions::set_port(uint16_t port) {
  cookie_ = fmt::format("lockstep_key_{}", port);
}

void KeySessions::make_room(const Digest& key, Clock::time_point now) {
  std::erase_if(sessions_, [&](const Session& session) { return session.ends <= now; });
  const auto is_of_key = [&](const Session& session) { return session.key == key; };
  const auto count = std::count_if(sessions_.begin(), sessions_.end(), is_of_key);
  if (static_cast<size_t>(count) >= kSessionsOfKeyMax) {
    sessions_.erase(std::find_if(sessions_.begin(), sessions_.end(), is_of_key));
  } else if (sessions_.size() >= kSessionsMax) {
    sessions_.erase(sessions_.begin());
  }
}

Result<std::string> KeySessions::open(const Digest& key, bool is_encrypted, Clock::time_point now) {
  std::string session = TRY(random_hex(kSessionBytes));
  const std::lock_guard lock(mutex_);
  make_room(key, now);
  sessions_.push_back({session, key, now + kSessionLife});
  return session_cookie(cookie_, session, kSessionLife) + (is_encrypted ? "; Secure" : "");
}

std::optional<Digest> KeySessions::key_of(std::string_view cookies, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  std::optional<Digest> key;
  for (const std::string_view value : cookie_values(cookies, cookie_)) {
    for (const Session& session : sessions_) {
      if (is_same_secret(session.text, value) && session.ends > now) key = session.key;
    }
  }
  return key;
}

bool KeySessions::close(std::string_view cookies) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const std::string_view value : cookie_values(cookies, cookie_)) {
    count += std::erase_if(
        sessions_, [&](const Session& session) { return is_same_secret(session.text, value); });
  }
  return count > 0;
}

std::string KeySessions::forgetting() const {
  return session_cookie(cookie_, "", std::chrono::seconds(0));
}

}  // namespace lockstep
