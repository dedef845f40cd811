#include "access/page_sessions.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

// The cookie as a browser sends it back.
std::string pair_of(const std::string& set_cookie) {
  return set_cookie.substr(0, set_cookie.find(';'));
}

std::string opened(PageSessions& sessions, PageSessions::Clock::time_point now) {
  return pair_of(sessions.open(sessions.make_code(now).value(), now).value());
}

}  // namespace

TEST_CASE("a code opens one session, once and in time") {
  PageSessions sessions = std::move(PageSessions::create().value());
  const PageSessions::Clock::time_point start{};
  const std::string code = sessions.make_code(start).value();
  const std::string cookie = sessions.open(code, start).value();
  CHECK(cookie.find("; HttpOnly") != std::string::npos);
  CHECK(cookie.find("; SameSite=Strict") != std::string::npos);
  CHECK(cookie.find("; Path=/;") != std::string::npos);
  CHECK(cookie.find("; Max-Age=43200") != std::string::npos);
  CHECK(sessions.has(pair_of(cookie), start));
  CHECK(!sessions.open(code, start).ok());
  const std::string late = sessions.make_code(start).value();
  CHECK(sessions.open(late, start + PageSessions::kCodeLife).error().code == ErrorCode::kNotFound);
  CHECK(!sessions.open("", start).ok());
  CHECK(!sessions.open(std::string(64, '0'), start).ok());
}

TEST_CASE("a session expires, and is found among other cookies") {
  PageSessions sessions = std::move(PageSessions::create().value());
  const PageSessions::Clock::time_point start{};
  const std::string pair = opened(sessions, start);
  CHECK(sessions.has("a=b; " + pair + "; c=d", start));
  CHECK(sessions.has("a=b;" + pair, start));
  CHECK(!sessions.has("", start));
  CHECK(!sessions.has(pair + "0", start));
  CHECK(!sessions.has(pair.substr(0, pair.size() - 1), start));
  CHECK(!sessions.has("x" + pair, start));
  CHECK(!sessions.has(pair.substr(0, pair.find('=') + 1), start));
  CHECK(sessions.has(pair, start + PageSessions::kSessionLife - std::chrono::seconds(1)));
  CHECK(!sessions.has(pair, start + PageSessions::kSessionLife));
}

TEST_CASE("codes and sessions are limited: the oldest is dropped") {
  PageSessions sessions = std::move(PageSessions::create().value());
  const PageSessions::Clock::time_point start{};
  const std::string first_code = sessions.make_code(start).value();
  for (size_t i = 1; i < PageSessions::kCodesMax; ++i) REQUIRE(sessions.make_code(start).ok());
  const std::string last_code = sessions.make_code(start).value();
  CHECK(!sessions.open(first_code, start).ok());
  CHECK(sessions.open(last_code, start).ok());

  const std::string first = opened(sessions, start);
  for (size_t i = 1; i < PageSessions::kSessionsMax; ++i) opened(sessions, start);
  CHECK(sessions.has(first, start));
  const std::string last = opened(sessions, start);
  CHECK(!sessions.has(first, start));
  CHECK(sessions.has(last, start));
}

TEST_CASE("two nodes of one machine have cookies of different names") {
  PageSessions one = std::move(PageSessions::create().value());
  PageSessions two = std::move(PageSessions::create().value());
  const std::string a = opened(one, {}), b = opened(two, {});
  CHECK(a.substr(0, a.find('=')) != b.substr(0, b.find('=')));
  CHECK(!one.has(b, {}));
}

}  // namespace lockstep
