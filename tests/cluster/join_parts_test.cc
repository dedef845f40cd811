// The pure parts of joining: PINs and tokens.
#include <doctest/doctest.h>

#include <set>

#include "cluster/join/join_frames.h"
#include "cluster/join/join_token.h"
#include "cluster/join/pin_desk.h"
#include "cluster/test_clock.h"

using namespace lockstep;
using namespace std::chrono_literals;

TEST_CASE("pin desk: a PIN has eight digits and is good for one attempt") {
  PinDesk desk;
  const auto pin = desk.issue("bob", kNow);
  REQUIRE(pin.ok());
  CHECK(pin.value().pin.size() == 8);
  CHECK(pin.value().pin.find_first_not_of("0123456789") == std::string::npos);
  REQUIRE(desk.pending(kNow).size() == 1);
  CHECK(desk.take(pin.value().number, kNow) == pin.value().pin);
  CHECK(!desk.take(pin.value().number, kNow));
  CHECK(desk.pending(kNow).empty());
}

TEST_CASE("pin desk: a PIN expires after two minutes") {
  PinDesk desk;
  const auto pin = desk.issue("bob", kNow);
  CHECK(desk.pending(kNow + 119s).size() == 1);
  CHECK(!desk.take(pin.value().number, kNow + 120s));
}

TEST_CASE("pin desk: three PINs in a minute, four at a time") {
  PinDesk desk;
  std::set<std::string> pins;
  for (int i = 0; i < 3; ++i) pins.insert(desk.issue("bob", kNow).value().pin);
  CHECK(pins.size() == 3);
  CHECK(desk.issue("bob", kNow + 59s).error().code == ErrorCode::kExhausted);
  CHECK(desk.issue("bob", kNow + 60s).ok());
  CHECK(desk.issue("bob", kNow + 61s).error().code == ErrorCode::kExhausted);  // four at a time
  CHECK(desk.issue("bob", kNow + 121s).ok());
}

TEST_CASE("join token: it is read back from its text, and a changed one is refused") {
  const ClusterKey key = ClusterKey::generate().value();
  const JoinToken token = make_join_token(key, 1'700'000'000).value();
  const std::string text = token.text();
  const auto back = parse_join_token(text);
  REQUIRE(back.ok());
  CHECK(back.value().cluster == key.id());
  CHECK(back.value().expires_s == 1'700'000'000);
  CHECK(back.value().secret == join_token_secret(key, 1'700'000'000, token.number).value());
  CHECK(!parse_join_token("").ok());
  CHECK(!parse_join_token(text.substr(0, text.size() - 2)).ok());
  std::string changed = text;
  changed[40] = changed[40] == '0' ? '1' : '0';
  CHECK(!parse_join_token(changed).ok());
  // A longer lifetime needs another secret, which only the cluster can make.
  CHECK(join_token_secret(key, 1'800'000'000, token.number).value() != token.secret);
  CHECK(text.find(key.text()) == std::string::npos);
}

TEST_CASE("join frames: they are read as written, and other bytes are refused") {
  JoinRequestFrame request{.name = "bob", .version = "0.1.0"};
  auto back = parse_join_request(encode_join_request(request));
  REQUIRE(back.ok());
  CHECK(back.value().name == "bob");
  CHECK(!back.value().with_token);
  request.with_token = true;
  request.token_expires_s = ~0ULL;
  request.token_number[3] = std::byte{7};
  back = parse_join_request(encode_join_request(request));
  REQUIRE(back.ok());
  CHECK(back.value().token_expires_s == ~0ULL);
  CHECK(back.value().token_number == request.token_number);
  CHECK(!parse_join_request("LSG1J").ok());
  CHECK(!parse_join_request("LSG1J{}").ok());
  CHECK(!parse_join_request("LSG1J{\"name\":\"bob\",\"version\":\"1\",\"oldest\":2,\"newest\":1,"
                            "\"with\":\"pin\"}")
             .ok());
  const auto frame = parse_join_frame(encode_join_frame({.share = std::string("\0a", 2)}));
  REQUIRE(frame.ok());
  CHECK(frame.value().share == std::string("\0a", 2));
  CHECK(!parse_join_frame("{\"share\":\"0\"}").ok());
  // Users read these sentences before the other end has proved anything.
  CHECK(parse_join_frame(encode_join_frame({.reason = "too many machines"})).ok());
  CHECK(!parse_join_frame(encode_join_frame({.reason = "\x1b[2J"})).ok());
  CHECK(!parse_join_frame(encode_join_frame({.name = "\x1b[2J"})).ok());
  CHECK(!parse_join_frame(encode_join_frame({.name = "\xc2\x9b"})).ok());
  CHECK(!parse_join_frame(encode_join_frame({.cluster = "\n"})).ok());
  CHECK(!parse_join_frame("[").ok());
}
