// The guarantees of a link over RDMA, over the fake library's devices.
#include "transport/verbs/verbs_link.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>

#include <cstring>
#include <future>

#include "transport/fake_devices.h"

using namespace lockstep;

namespace {

struct Kind {
  const char* name;
  FakeMode mode;
  bool unreliable;
  size_t frame_bytes;
};

constexpr Kind kKinds[] = {
    {"rc", FakeMode::kReliable, false, 64 * 1024},
    {"uc", FakeMode::kReliable, true, 16 * 1024},
    {"apple", FakeMode::kApple, false, 16 * 1024},
    {"lossy without a loss", FakeMode::kLossy, false, 16 * 1024},
};

}  // namespace

TEST_CASE("frames of any length arrive over RDMA whole, in order and aligned to 64 bytes") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    FakeScope fake(kind.mode);
    const auto devices = open_fake_devices(kind.unreliable);
    LinkPair links(*devices);
    CHECK(links.left->frame_bytes_max() == kind.frame_bytes - kFrameHeaderBytes);
    CHECK(links.right->peek().empty());
    const size_t most = links.left->frame_bytes_max();
    int seed = 0;
    for (const size_t bytes :
         {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{5000}, most - 1, most}) {
      REQUIRE(try_send(*links.left, bytes, ++seed));
      const auto frame = await_frame(*links.right);
      CHECK(is_frame(frame, bytes, seed));
      CHECK(reinterpret_cast<uintptr_t>(frame.data()) % 64 == 0);
      links.right->release();
    }
    CHECK(links.right->peek().empty());
    CHECK(links.right->health().ok());
    CHECK(fake->early_messages == 0);
  }
}

TEST_CASE("a full RDMA link gives no frame, and has room again when the peer reads") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    FakeScope fake(kind.mode);
    const auto devices = open_fake_devices(kind.unreliable);
    LinkPair links(*devices);
    for (int round = 0; round < 20; ++round) {
      int sent = 0;
      while (sent < 1000 && try_send(*links.left, 1000, sent)) ++sent;
      // One RECV is reserved for credits, and credits for less than half of them may be
      // outstanding.
      CHECK(sent < VerbsDevices::kDepth);
      CHECK(sent >= VerbsDevices::kDepth / 2);
      for (int received = 0; received < sent; ++received) {
        REQUIRE(is_frame(await_frame(*links.right), 1000, received));
        links.right->release();
      }
      Wait wait(kVerbsTimeout);
      while (links.left->acquire(1000).empty()) REQUIRE(wait.pause("room").ok());
      links.left->post();  // and this one is read before the next round
      REQUIRE(await_frame(*links.right).size() == 1000);
      links.right->release();
      // Unreported reads are acknowledged with the next frame in the other direction.
      REQUIRE(try_send(*links.right, 1, round));
      REQUIRE(is_frame(await_frame(*links.left), 1, round));
      links.left->release();
    }
    CHECK(fake->early_messages == 0);
  }
}

TEST_CASE("two threads exchange thousands of frames over RDMA and never overrun credits") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    FakeScope fake(kind.mode);
    const auto devices = open_fake_devices(kind.unreliable);
    LinkPair links(*devices);
    constexpr int kFrames = 2000;
    int left_frames = 0;
    std::thread thread([&] { left_frames = exchange_frames(*links.left, kFrames); });
    CHECK(exchange_frames(*links.right, kFrames) == kFrames);
    thread.join();
    CHECK(left_frames == kFrames);
    CHECK(fake->early_messages == 0);
  }
}

TEST_CASE("both sides can fill the link before either reads") {
  FakeScope fake(FakeMode::kApple);
  const auto devices = open_fake_devices();
  LinkPair links(*devices);
  for (int round = 0; round < 50; ++round) {
    int sent[2] = {0, 0};
    while (try_send(*links.left, 100, sent[0])) ++sent[0];
    while (try_send(*links.right, 100, sent[1])) ++sent[1];
    CHECK(sent[0] > 0);
    CHECK(sent[1] > 0);
    for (int i = 0; i < sent[0]; ++i) {
      REQUIRE(is_frame(await_frame(*links.right), 100, i));
      links.right->release();
    }
    for (int i = 0; i < sent[1]; ++i) {
      REQUIRE(is_frame(await_frame(*links.left), 100, i));
      links.left->release();
    }
  }
  CHECK(fake->early_messages == 0);
}

TEST_CASE("frames sent over RDMA before the peer closed can be read; then it is lost") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    FakeScope fake(kind.mode);
    const auto devices = open_fake_devices(kind.unreliable);
    LinkPair links(*devices);
    REQUIRE(try_send(*links.left, 100, 1));
    REQUIRE(try_send(*links.left, 200, 2));
    links.left.reset();
    CHECK(is_frame(await_frame(*links.right), 100, 1));
    CHECK(links.right->health().ok());
    links.right->release();
    CHECK(is_frame(await_frame(*links.right), 200, 2));
    links.right->release();
    const Error error = await_loss(*links.right);
    CHECK(error.code == ErrorCode::kPeerLost);
    CHECK(error.message == "rank 0: it closed the link");
    CHECK(links.right->acquire(1).empty());
  }
}

TEST_CASE("lost frames are noticed when the peer closes") {
  FakeScope fake(FakeMode::kLossy);
  const auto devices = open_fake_devices();
  LinkPair links(*devices);
  fake->drop_every = 1;
  REQUIRE(try_send(*links.left, 100, 1));
  links.left.reset();
  const Error error = await_loss(*links.right);
  CHECK(error.code == ErrorCode::kPeerLost);
  CHECK(error.message == "rank 0: it closed the link and its last frames are lost");
}

TEST_CASE("a lost frame breaks the link at the next one, and earlier frames are correct") {
  FakeScope fake(FakeMode::kLossy);
  const auto devices = open_fake_devices();
  LinkPair links(*devices);
  fake->drop_every = 7;
  int sent = 0;
  while (sent < 14 && try_send(*links.left, 300, sent)) ++sent;
  REQUIRE(sent == 14);
  int received = 0;
  while (!await_frame(*links.right).empty()) {
    CHECK(is_frame(links.right->peek(), 300, received));
    links.right->release();
    ++received;
  }
  CHECK(received < 7);
  CHECK(links.right->health().error().code == ErrorCode::kCorrupt);
  CHECK(links.right->health().error().message.find("sequence number") != std::string::npos);
}

TEST_CASE("a sleeping reader of an RDMA link is woken by a frame and by the loss of its peer") {
  FakeScope fake(FakeMode::kApple);
  const auto devices = open_fake_devices();
  LinkPair links(*devices);
  constexpr std::chrono::seconds kAtMost{20};
  const auto start = std::chrono::steady_clock::now();
  const auto has_time = [&] { return std::chrono::steady_clock::now() - start < kAtMost; };
  std::promise<void> is_read;
  std::thread sender([&, read = is_read.get_future()] {
    try_send(*links.left, 100, 1);
    CHECK(read.wait_for(kAtMost) == std::future_status::ready);
    links.left.reset();
  });
  Link& right = *links.right;
  while (right.peek().empty() && has_time()) right.wait_readable(kAtMost);
  CHECK(!right.peek().empty());
  if (!right.peek().empty()) right.release();
  is_read.set_value();
  while (right.health().ok() && has_time()) right.wait_readable(kAtMost);
  sender.join();
  CHECK(!right.health().ok());
  CHECK(has_time());
  links.right->wait_readable(std::chrono::milliseconds{1});
}

TEST_CASE("a completion with an error is a lost peer, with the cause") {
  const std::pair<FakeCall, const char*> cases[] = {
      {FakeCall::kSent, "rank 1: no answer to repeated packets"},
      {FakeCall::kPostSend, "rank 1: sending failed: Cannot allocate memory"},
      {FakeCall::kPollCq, "rank 1: its completions cannot be read"},
  };
  for (const auto& [call, message] : cases) {
    FakeScope fake(FakeMode::kReliable);
    const auto devices = open_fake_devices();
    LinkPair links(*devices);
    fake->succeeding_calls = 0;
    fake->failing_call = static_cast<int>(call);
    REQUIRE(try_send(*links.left, 100, 1));
    const Error error = await_loss(*links.left);
    CHECK(error.code == ErrorCode::kPeerLost);
    CHECK(error.message == message);
    CHECK(links.left->acquire(100).empty());
  }
  const std::pair<FakeCall, const char*> receiver_cases[] = {
      {FakeCall::kReceived, "rank 0: the connection had ended"},
      {FakeCall::kPostRecv, "rank 0: room for its frames was refused: Cannot allocate memory"},
  };
  for (const auto& [call, message] : receiver_cases) {
    FakeScope fake(FakeMode::kReliable);
    const auto devices = open_fake_devices();
    LinkPair links(*devices);
    REQUIRE(try_send(*links.left, 100, 1));
    fake->succeeding_calls = 0;
    fake->failing_call = static_cast<int>(call);
    CHECK(await_loss(*links.right).message == message);
  }
}

#endif
