#include "collective/sums/message_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/threads/wait.h"
#include "transport/form/local_links.h"

using namespace lockstep;

namespace {

// One end of an in-memory link with few and small frames.
class SmallLink final : public Link {
 public:
  using Frames = std::deque<std::vector<std::byte>>;
  SmallLink(Frames& out, Frames& in) : out_(out), in_(in) {}

  size_t frame_bytes_max() const override { return 24; }
  std::span<std::byte> acquire(size_t bytes) override {
    REQUIRE(bytes <= frame_bytes_max());
    if (out_.size() >= 2) return {};
    acquired_.resize(bytes);
    return acquired_;
  }
  void post() override { out_.push_back(acquired_); }
  bool flush() override { return true; }
  std::span<const std::byte> peek() override {
    return in_.empty() ? std::span<const std::byte>() : std::span<const std::byte>(in_.front());
  }
  void release() override { in_.pop_front(); }
  void wait_readable(std::chrono::microseconds) override {}
  Status health() const override { return Ok{}; }

 private:
  Frames& out_;
  Frames& in_;
  std::vector<std::byte> acquired_;
};

std::vector<std::byte> message_of(size_t size, int seed) {
  std::vector<std::byte> message(size);
  for (size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  return message;
}

}  // namespace

TEST_CASE("messages of every length arrive whole and in order through small frames") {
  SmallLink::Frames there, back;
  SmallLink ours(there, back), theirs(back, there);
  MessageSender sender(ours);
  MessageReceiver receiver(theirs, 1, 1, 1000);
  for (size_t size = 1; size <= 100; ++size) {
    std::vector<std::byte> message = message_of(size, 3), got;
    sender.send(message);
    while (!receiver.has_message()) {
      const bool has_sent = sender.poll();
      const auto has_received = receiver.poll();
      REQUIRE(has_received.ok());
      REQUIRE((has_sent || has_received.value()));
    }
    sender.poll();
    CHECK(sender.is_idle());
    receiver.take(got);
    CHECK(got == message_of(size, 3));
  }
  CHECK(there.empty());
}

TEST_CASE("a receiver takes a limited number of messages and leaves the others in the link") {
  SmallLink::Frames there, back;
  SmallLink ours(there, back), theirs(back, there);
  MessageSender sender(ours);
  MessageReceiver receiver(theirs, 1, 2, 1000);
  std::vector<std::byte> message;
  for (int i = 0; i < 4; ++i) {
    message = message_of(16, i);
    sender.send(message);
    sender.poll();
    REQUIRE(sender.is_idle());
    REQUIRE(receiver.poll().ok());
  }
  CHECK(there.size() == 2);
  for (int i = 0; i < 4; ++i) {
    REQUIRE(receiver.has_message());
    receiver.take(message);
    CHECK(message == message_of(16, i));
    REQUIRE(receiver.poll().ok());
  }
  CHECK(!receiver.has_message());
}

TEST_CASE("impossible lengths are an error that names the rank") {
  const auto error_of = [](std::vector<std::vector<std::byte>> frames, size_t bytes_max) {
    SmallLink::Frames there(frames.begin(), frames.end()), back;
    SmallLink theirs(back, there);
    MessageReceiver receiver(theirs, 5, 1, bytes_max);
    const auto moved = receiver.poll();
    REQUIRE(!moved.ok());
    CHECK(moved.error().code == ErrorCode::kCorrupt);
    return moved.error().message;
  };
  const auto frame = [](uint64_t total, size_t bytes) {
    std::vector<std::byte> all(sizeof(total) + bytes);
    std::copy_n(reinterpret_cast<const std::byte*>(&total), sizeof(total), all.begin());
    return all;
  };
  CHECK(error_of({frame(101, 4)}, 100).find("rank 5") != std::string::npos);
  CHECK(error_of({frame(0, 0)}, 100).find("0 bytes, not 1 to 100") != std::string::npos);
  CHECK(error_of({std::vector<std::byte>(3)}, 100).find("not 1 to 100") != std::string::npos);
  CHECK(error_of({frame(6, 8)}, 100).find("longer") != std::string::npos);
  CHECK(error_of({frame(10, 8), std::vector<std::byte>(3)}, 100).find("longer") !=
        std::string::npos);
}

TEST_CASE("both directions of a real link carry long messages at once") {
  for (const LinkKind kind : {LinkKind::kShm, LinkKind::kTcp}) {
    auto links = open_local_links(kind, 2);
    REQUIRE(links.ok());
    constexpr size_t kBytes = 11'000'003;  // more than a ring or a socket holds
    std::vector<MessageSender> senders;
    std::vector<MessageReceiver> receivers;
    for (size_t side = 0; side < 2; ++side) {
      Link& link = *links.value()[side][1 - side];
      senders.emplace_back(link);
      receivers.emplace_back(link, static_cast<int>(1 - side), 1, kBytes);
    }
    for (size_t side = 0; side < 2; ++side) {
      std::vector<std::byte> message = message_of(kBytes, static_cast<int>(side));
      senders[side].send(message);
    }
    Wait wait(std::chrono::seconds(20));
    while (!receivers[0].has_message() || !receivers[1].has_message()) {
      REQUIRE(wait.pause("messages").ok());
      for (MessageSender& sender : senders) sender.poll();
      for (MessageReceiver& receiver : receivers) REQUIRE(receiver.poll().ok());
    }
    for (size_t side = 0; side < 2; ++side) {
      std::vector<std::byte> got;
      receivers[side].take(got);
      CHECK(got == message_of(kBytes, static_cast<int>(1 - side)));
    }
  }
}
