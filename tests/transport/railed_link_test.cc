// Several links used as one.
#include "transport/railed_link.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/threads/wait.h"
#include "transport/pipe_link.h"
#include "transport/slowed_link.h"

using namespace lockstep;

namespace {

// Both ends of rails over pipes; the test keeps access to the single pipes.
struct Rails {
  std::vector<std::unique_ptr<Link>> left, right;

  explicit Rails(int count) {
    for (int rail = 0; rail < count; ++rail) {
      LocalLinks links = open_pipe_links(2);
      left.push_back(std::move(links[0][1]));
      right.push_back(std::move(links[1][0]));
    }
  }
};

bool sends(Link& link, int value, size_t bytes = 100) {
  const auto frame = link.acquire(bytes);
  if (frame.empty()) return false;
  std::memset(frame.data(), value, bytes);
  link.post();
  return true;
}

// Receives the next frame if it holds `value`.
bool receives(Link& link, int value) {
  Wait wait(kLong);
  while (link.peek().empty()) {
    if (!link.health().ok() || !wait.pause("frame").ok()) return false;
  }
  const bool is_right = link.peek().front() == static_cast<std::byte>(value);
  link.release();
  return is_right;
}

// A frame as a sender puts it on a rail: its number and a payload.
void send_raw(Link& rail, uint64_t number, size_t bytes = 128) {
  const auto frame = rail.acquire(bytes);
  REQUIRE(frame.size() == bytes);
  std::memset(frame.data(), 0, bytes);
  std::memcpy(frame.data(), &number, std::min(bytes, sizeof(number)));
  rail.post();
}

}  // namespace

TEST_CASE("every rail carries frames, and they arrive in their order") {
  for (const int count : {1, 2, 3, 8}) {
    CAPTURE(count);
    Rails rails(count);
    RailedLink sender(std::move(rails.left), 1);
    for (int i = 0; i < 2 * count; ++i) REQUIRE(sends(sender, i));
    for (auto& rail : rails.right) CHECK(!rail->peek().empty());
    RailedLink receiver(std::move(rails.right), 0);
    for (int i = 0; i < 2 * count; ++i) CHECK(receives(receiver, i));
    CHECK(receiver.peek().empty());
    CHECK(receiver.health().ok());
  }
}

TEST_CASE("a full rail is skipped, and the order is kept") {
  Rails rails(2);
  Link& first = *rails.left[0];
  while (!first.acquire(100).empty()) first.post();  // fills the underlying pipe
  RailedLink sender(std::move(rails.left), 1);
  int sent = 0;
  while (sends(sender, sent)) ++sent;
  CHECK(sent == static_cast<int>(PipeLink::kFramesMax));
  for (size_t i = 0; i < PipeLink::kFramesMax; ++i) rails.right[0]->release();
  RailedLink receiver(std::move(rails.right), 0);
  for (int i = 0; i < 40; ++i) {
    CHECK(receives(receiver, i));
    if (sends(sender, sent)) ++sent;
    REQUIRE(sent > i + 1);
  }
}

TEST_CASE("frames over rails of different speed are reordered by number") {
  Rails rails(2);
  rails.left[1] = std::make_unique<SlowedLink>(
      std::move(rails.left[1]), SlowedLink::Options{.delay = std::chrono::milliseconds(20)});
  rails.right[1] = std::make_unique<SlowedLink>(
      std::move(rails.right[1]), SlowedLink::Options{.delay = std::chrono::milliseconds(20)});
  RailedLink sender(std::move(rails.left), 1), receiver(std::move(rails.right), 0);
  for (int i = 0; i < 6; ++i) REQUIRE(sends(sender, i));
  for (int i = 0; i < 6; ++i) CHECK(receives(receiver, i));
}

TEST_CASE("two rails of limited speed carry more than one in the same time") {
  // One rail of 1 Gbit/s needs a millisecond per frame; over two, the last of eight is due after
  // four.
  LocalLinks links =
      std::move(open_local_links({.kind = LinkKind::kTcp, .rails = 2, .gbit_s = 1}, 2).value());
  RailedLink* receiver = dynamic_cast<RailedLink*>(links[1][0].get());
  REQUIRE(receiver != nullptr);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 8; ++i) REQUIRE(sends(*links[0][1], i, 125'000));
  for (int i = 0; i < 8; ++i) CHECK(receives(*receiver, i));
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(4));
}

TEST_CASE("the loss of one rail is the loss of the link, and is named") {
  Rails rails(3);
  std::unique_ptr<Link> kept[2] = {std::move(rails.left[0]), std::move(rails.left[2])};
  rails.left[1].reset();
  RailedLink receiver(std::move(rails.right), 4);
  Wait wait(kLong);
  while (receiver.health().ok()) {
    CHECK(receiver.peek().empty());
    REQUIRE(wait.pause("loss").ok());
  }
  CHECK(receiver.health().error().code == ErrorCode::kPeerLost);
  CHECK(receiver.health().error().message == "rank 0: it closed the pipe (rail 2 of 3)");
}

TEST_CASE("impossible numbers break a link of rails") {
  SUBCASE("a number twice") {
    Rails rails(2);
    RailedLink receiver(std::move(rails.right), 0);
    send_raw(*rails.left[0], 0);
    REQUIRE(receives(receiver, 0));
    send_raw(*rails.left[1], 0);
    CHECK(receiver.peek().empty());
    CHECK(receiver.health().error().code == ErrorCode::kCorrupt);
  }
  SUBCASE("a number missing on all rails") {
    Rails rails(2);
    RailedLink receiver(std::move(rails.right), 0);
    send_raw(*rails.left[0], 1);
    CHECK(receiver.peek().empty());
    CHECK(receiver.health().ok());
    send_raw(*rails.left[1], 2);
    CHECK(receiver.peek().empty());
    CHECK(receiver.health().error().code == ErrorCode::kCorrupt);
  }
  SUBCASE("no room for a number") {
    Rails rails(2);
    RailedLink receiver(std::move(rails.right), 0);
    send_raw(*rails.left[0], 0, 64);
    CHECK(receiver.peek().empty());
    CHECK(receiver.health().error().code == ErrorCode::kCorrupt);
  }
}
