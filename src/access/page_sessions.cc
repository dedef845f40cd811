#include "access/page_sessions.h"

#include <fmt/core.h>

#include <utility>

#include "access/own_page.h"
#include "base/crypto/secrets.h"

namespace lockstep {
namespace {

constexpr size_t kCookieBytes = 32;
constexpr size_t kNameBytes = 4;

template <class Secrets>
void make_room(Secrets& secrets, size_t count_max, PageSessions::Clock::time_point now) {
  std::erase_if(secrets, [&](const auto& secret) { return secret.ends <= now; });
  if (secrets.size() >= count_max) secrets.erase(secrets.begin());
}

}  // namespace

Result<PageSessions> PageSessions::create() {
  return PageSessions("lockstep_page_" + TRY(random_hex(kNameBytes)));
}

PageSessions::PageSessions(PageSessions&& other) noexcept
    : cookie_(std::move(other.cookie_)),
      codes_(std::move(other.codes_)),
      sessions_(std::move(other.sessions_)) {}

Result<std::string> PageSessions::make_code(Clock::time_point now) {
  std::string code = TRY(random_hex(kCookieBytes));
  const std::lock_guard lock(mutex_);
  make_room(codes_, kCodesMax, now);
  codes_.push_back({code, now + kCodeLife});
  return code;
}

Result<std::string> PageSessions::open(std::string_view code, Clock::time_point now) {
  std::string session = TRY(random_hex(kCookieBytes));
  const std::lock_guard lock(mutex_);
  const size_t count = std::erase_if(codes_, [&](const Secret& known) {
    return is_same_secret(known.text, code) && known.ends > now;
  });
  if (count == 0) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("this address was already opened or is older than {} minutes: "
                             "`lockstep page` prints a new one",
                             kCodeLife.count())};
  }
  make_room(sessions_, kSessionsMax, now);
  sessions_.push_back({session, now + kSessionLife});
  return session_cookie(cookie_, session, kSessionLife);
}

bool PageSessions::has(std::string_view cookies, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  bool is_known = false;
  for (const std::string_view value : cookie_values(cookies, cookie_)) {
    for (const Secret& session : sessions_) {
      is_known |= is_same_secret(session.text, value) && session.ends > now;
    }
  }
  return is_known;
}

}  // namespace lockstep
