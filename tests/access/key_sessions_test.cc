#include "access/key_sessions.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

using Time = KeySessions::Clock::time_point;

Digest hash_of_key(int number) {
  Digest digest{};
  digest[0] = static_cast<std::byte>(number);
  return digest;
}

// The cookie as a browser sends it back.
std::string opened_session(KeySessions& sessions, int key, Time now) {
  const std::string cookie = sessions.open(hash_of_key(key), false, now).value();
  return cookie.substr(0, cookie.find(';'));
}

}  // namespace

TEST_CASE("a session stands for its key until it expires") {
  KeySessions sessions(8600);
  const Time start{};
  const std::string cookie = sessions.open(hash_of_key(1), false, start).value();
  CHECK(cookie.starts_with("lockstep_key_8600="));
  CHECK(cookie.find("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict") != std::string::npos);
  CHECK(cookie.find("Secure") == std::string::npos);
  CHECK(sessions.open(hash_of_key(1), true, start).value().ends_with("; Secure"));
  const std::string pair = cookie.substr(0, cookie.find(';'));
  CHECK(sessions.key_of("a=b; " + pair, start) == hash_of_key(1));
  CHECK(sessions.key_of(pair, start + KeySessions::kSessionLife - std::chrono::seconds(1)));
  CHECK(!sessions.key_of(pair, start + KeySessions::kSessionLife));
  CHECK(!sessions.key_of("", start));
  CHECK(!sessions.key_of(pair + "0", start));
  CHECK(!sessions.key_of("lockstep_key_8600=", start));
  CHECK(!sessions.key_of("lockstep_key_8601" + pair.substr(pair.find('=')), start));
}

TEST_CASE("an ended session is over, and others stay") {
  KeySessions sessions(1);
  const Time start{};
  const std::string first = opened_session(sessions, 1, start);
  const std::string second = opened_session(sessions, 1, start);
  CHECK(sessions.close(first));
  CHECK(!sessions.close(first));
  CHECK(!sessions.key_of(first, start));
  CHECK(sessions.key_of(second, start));
  CHECK(sessions.forgetting() == "lockstep_key_1=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}

TEST_CASE("sessions are limited, and no key can push out those of the others") {
  KeySessions sessions(1);
  const Time start{};
  const std::string other = opened_session(sessions, 2, start);
  std::vector<std::string> own;
  for (size_t i = 0; i <= KeySessions::kSessionsOfKeyMax; ++i) {
    own.push_back(opened_session(sessions, 1, start));
  }
  CHECK(!sessions.key_of(own.front(), start));  // the oldest of this key
  CHECK(sessions.key_of(own[1], start));
  CHECK(sessions.key_of(own.back(), start));
  CHECK(sessions.key_of(other, start) == hash_of_key(2));
  for (size_t i = own.size(); i < KeySessions::kSessionsMax; ++i) {
    opened_session(sessions, 3 + static_cast<int>(i / KeySessions::kSessionsOfKeyMax), start);
  }
  CHECK(sessions.key_of(other, start));
  opened_session(sessions, 200, start);
  CHECK(!sessions.key_of(other, start));  // the oldest of all
}

TEST_CASE("of many cookies with one name only the first are looked at") {
  KeySessions sessions(1);
  const Time start{};
  const std::string pair = opened_session(sessions, 1, start);
  std::string many;
  for (int i = 0; i < 7; ++i) many += "lockstep_key_1=x; ";
  CHECK(sessions.key_of(many + pair, start));
  CHECK(!sessions.key_of(many + "lockstep_key_1=x; " + pair, start));
}

}  // namespace lockstep
