// The messages between two ends before the first frame, and attacks by an eavesdropper.
#include "transport/tcp/handshake.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace lockstep;

namespace {

constexpr GroupToken kGroupToken{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
constexpr Handshake::Options kListener{.rank = 0, .size = 3, .epoch = 5, .token = kGroupToken};
constexpr Handshake::Options kCaller{.rank = 2, .size = 3, .epoch = 5, .token = kGroupToken};

using Bytes = std::vector<std::byte>;

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Bytes take_all(int fd) {
  Bytes bytes(4096);
  const ssize_t received = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(received, 0)));
  return bytes;
}

void give(int fd, const Bytes& bytes) {
  REQUIRE(::send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

// Two ends whose messages pass through the test.
struct Talk {
  std::pair<UniqueFd, UniqueFd> left = socket_pair(), right = socket_pair();
  Handshake caller, listener;
  Bytes from_caller, from_listener;

  explicit Talk(const Handshake::Options& calling = kCaller,
                const Handshake::Options& listening = kListener)
      : caller(Handshake::call(calling, 0, 0)), listener(Handshake::answer(listening)) {}

  Result<bool> advance_caller() {
    auto result = caller.advance(left.first.get());
    const Bytes said = take_all(left.second.get());
    from_caller.insert(from_caller.end(), said.begin(), said.end());
    if (!said.empty()) give(right.second.get(), said);
    return result;
  }
  Result<bool> advance_listener() {
    auto result = listener.advance(right.first.get());
    const Bytes said = take_all(right.second.get());
    from_listener.insert(from_listener.end(), said.begin(), said.end());
    if (!said.empty()) give(left.second.get(), said);
    return result;
  }
  // Passes the three messages in order; false if either end failed.
  bool finish() {
    const auto is = [](const Result<bool>& result, bool wanted) {
      return result.ok() && result.value() == wanted;
    };
    return is(advance_caller(), false) && is(advance_listener(), false) &&
           is(advance_caller(), true) && is(advance_listener(), true);
  }
};

bool contains(const Bytes& bytes, std::span<const std::byte> part) {
  return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

}  // namespace

TEST_CASE("two ranks of a group authenticate and agree on the rail") {
  Talk talk({.rank = 2, .size = 3, .epoch = 5, .token = kGroupToken, .rails = 3},
            {.rank = 0, .size = 3, .epoch = 5, .token = kGroupToken, .rails = 3});
  talk.caller =
      Handshake::call({.rank = 2, .size = 3, .epoch = 5, .token = kGroupToken, .rails = 3}, 0, 2);
  REQUIRE(talk.finish());
  CHECK(talk.listener.peer() == 2);
  CHECK(talk.listener.rail() == 2);
  CHECK(talk.caller.peer() == 0);
  CHECK_FALSE(talk.caller.keys().value().has_value());
  CHECK_FALSE(contains(talk.from_caller, std::span(kGroupToken).first(8)));
  CHECK_FALSE(contains(talk.from_listener, std::span(kGroupToken).first(8)));
}

TEST_CASE("an encrypted connection has unique keys") {
  Handshake::Options calling = kCaller, listening = kListener;
  calling.encrypts = listening.encrypts = true;
  Talk one(calling, listening), two(calling, listening);
  REQUIRE(one.finish());
  REQUIRE(two.finish());
  const LinkKeys keys = *one.caller.keys().value();
  CHECK(keys.send == one.listener.keys().value()->receive);
  CHECK(keys.receive == one.listener.keys().value()->send);
  CHECK(keys.cipher == one.listener.keys().value()->cipher);
  CHECK(keys.send != keys.receive);
  CHECK(keys.send != two.caller.keys().value()->send);
}

TEST_CASE("a replay by an eavesdropper is refused") {
  Talk heard;
  REQUIRE(heard.finish());
  const auto [ours, theirs] = socket_pair();
  Handshake listener = Handshake::answer(kListener);
  give(theirs.get(), heard.from_caller);
  const Result<bool> replayed = listener.advance(ours.get());
  REQUIRE(!replayed.ok());
  CHECK(replayed.error().code == ErrorCode::kCorrupt);
  // The same attack on a caller: the answer to another nonce.
  const auto [near, far] = socket_pair();
  Handshake caller = Handshake::call(kCaller, 0, 0);
  CHECK_FALSE(caller.advance(near.get()).value());
  give(far.get(), heard.from_listener);
  CHECK(caller.advance(near.get()).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a rank of another group, epoch or place gets no answer") {
  Handshake::Options bad[4] = {kCaller, kCaller, kCaller, kCaller};
  bad[0].token[15] = std::byte{1};
  bad[1].epoch = 4;
  bad[2].rank = 0;
  bad[3].rank = 3;
  for (const Handshake::Options& options : bad) {
    Talk talk(options);
    CHECK_FALSE(talk.advance_caller().value());
    CHECK(talk.advance_listener().error().code == ErrorCode::kCorrupt);
    CHECK(talk.from_listener.empty());
  }
  Talk talk;
  talk.caller = Handshake::call(kCaller, 1, 0);  // calls another rank
  CHECK_FALSE(talk.advance_caller().value());
  CHECK(talk.advance_listener().error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a changed bit in any message ends the handshake") {
  for (size_t byte = 0; byte < 2 * sizeof(Hello) + sizeof(Digest); ++byte) {
    CAPTURE(byte);
    const auto [near, far] = socket_pair();
    const auto [ours, theirs] = socket_pair();
    Handshake caller = Handshake::call(kCaller, 0, 0), listener = Handshake::answer(kListener);
    bool has_failed = false;
    size_t said = 0;
    const auto pass = [&](Handshake& from, int from_fd, int tap, int onward) {
      has_failed = has_failed || !from.advance(from_fd).ok();
      Bytes bytes = take_all(tap);
      if (byte >= said && byte < said + bytes.size()) bytes[byte - said] ^= std::byte{4};
      said += bytes.size();
      if (!bytes.empty()) give(onward, bytes);
    };
    pass(caller, near.get(), far.get(), theirs.get());
    pass(listener, ours.get(), theirs.get(), far.get());
    pass(caller, near.get(), far.get(), theirs.get());
    const Result<bool> last = listener.advance(ours.get());
    CHECK((has_failed || !last.ok()));
  }
}

TEST_CASE("a version mismatch is reported in one sentence, at both ends") {
  Hello future;
  future.version = 99;
  const auto* bytes = reinterpret_cast<const std::byte*>(&future);
  const auto [ours, theirs] = socket_pair();
  Handshake listener = Handshake::answer(kListener);
  give(theirs.get(), Bytes(bytes, bytes + Hello::kPrefixBytes));
  const Result<bool> refused = listener.advance(ours.get());
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message ==
        "the other end speaks version 99 of links, this one version 2: run the same lockstep "
        "everywhere");
  const Bytes answer = take_all(theirs.get());  // so that the other end can report it too
  REQUIRE(answer.size() == Hello::kPrefixBytes);
  const auto [near, far] = socket_pair();
  Handshake caller = Handshake::call(kCaller, 0, 0);
  CHECK_FALSE(caller.advance(near.get()).value());
  give(far.get(), Bytes(bytes, bytes + Hello::kPrefixBytes));
  CHECK(caller.advance(near.get()).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("ranks that were started with different link options report it") {
  Handshake::Options encrypting = kCaller, railed = kCaller;
  encrypting.encrypts = true;
  railed.rails = 2;
  for (const Handshake::Options& options : {encrypting, railed}) {
    Talk talk(options);
    CHECK_FALSE(talk.advance_caller().value());
    const Result<bool> listener = talk.advance_listener();
    const Result<bool> caller = talk.advance_caller();
    REQUIRE(!listener.ok());
    REQUIRE(!caller.ok());
    CHECK(listener.error().code == ErrorCode::kUnsupported);
    CHECK(caller.error().code == ErrorCode::kUnsupported);
    CHECK(caller.error().message.find("rank 0 ") == 0);
    CHECK(listener.error().message.find("rank 2 ") == 0);
  }
}
