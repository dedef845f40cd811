// The guarantees of every link, over a pipe, shared memory and TCP.
#include <dirent.h>
#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <thread>

#include "base/threads/wait.h"
#include "transport/pipe_link.h"

using namespace lockstep;

namespace {

// False if there is no room.
bool try_send(Link& link, size_t bytes, int seed) {
  const auto frame = link.acquire(bytes);
  if (frame.empty()) return false;
  for (size_t i = 0; i < bytes; ++i) frame[i] = static_cast<std::byte>(seed + i * 7);
  link.post();
  return true;
}

bool is_frame(std::span<const std::byte> frame, size_t bytes, int seed) {
  if (frame.size() != bytes) return false;
  for (size_t i = 0; i < bytes; ++i) {
    if (frame[i] != static_cast<std::byte>(seed + i * 7)) return false;
  }
  return true;
}

std::span<const std::byte> await_frame(Link& link, Link* sender = nullptr) {
  Wait wait(kLong);
  while (link.peek().empty()) {
    if (sender) sender->flush();
    if (!link.health().ok() || !wait.pause("frame").ok()) return {};
  }
  return link.peek();
}

ErrorCode await_loss(Link& link) {
  Wait wait(kLong);
  while (link.health().ok()) {
    link.peek();
    if (!wait.pause("loss").ok()) return ErrorCode::kTimeout;
  }
  return link.health().error().code;
}

size_t open_descriptors() {
  size_t count = 0;
  DIR* folder = opendir("/dev/fd");
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

}  // namespace

TEST_CASE("frames of any length arrive whole, in order and aligned to 64 bytes") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Link &left = *links[0][1], &right = *links[1][0];
    CHECK(right.peek().empty());
    int seed = 0;
    for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{5000},
                               left.frame_bytes_max() - 1, left.frame_bytes_max()}) {
      const auto room = left.acquire(bytes);
      REQUIRE(room.size() == bytes);
      REQUIRE(try_send(left, bytes, ++seed));
      const auto frame = await_frame(right, &left);
      CHECK(is_frame(frame, bytes, seed));
      if (kind.open != open_pipe_links) {
        CHECK(reinterpret_cast<uintptr_t>(room.data()) % 64 == 0);
        CHECK(reinterpret_cast<uintptr_t>(frame.data()) % 64 == 0);
      }
      right.release();
    }
    CHECK(right.peek().empty());
    CHECK(right.health().ok());
  }
}

TEST_CASE("a full link gives no frame, and has room again when the peer reads") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    Link &left = *links[0][1], &right = *links[1][0];
    int sent = 0;
    // TCP also has the kernel's buffers, which are full well before 1000 frames of 1 MiB.
    const size_t frame_bytes_max = left.frame_bytes_max();
    while (sent < 1000 && try_send(left, frame_bytes_max, sent)) ++sent;
    REQUIRE(sent > 0);
    REQUIRE(sent < 1000);
    CHECK(left.acquire(frame_bytes_max).empty());
    for (int received = 0; received < sent; ++received) {
      REQUIRE(is_frame(await_frame(right, &left), frame_bytes_max, received));
      right.release();
    }
    CHECK(left.flush());
    CHECK(try_send(left, frame_bytes_max, 1));
  }
}

TEST_CASE("two threads exchange thousands of frames of mixed lengths without a wrong byte") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    constexpr int kFrames = 3000;
    const auto length = [](int i) { return static_cast<size_t>(1 + i * 7919 % 40'000); };
    std::thread sender([&] {
      Wait wait(kLong);
      for (int i = 0; i < kFrames; ++i) {
        while (!try_send(*links[0][1], length(i), i)) {
          if (!wait.pause("room").ok()) return;
        }
        wait.restart();
      }
      while (!links[0][1]->flush() && wait.pause("room").ok()) {
      }
    });
    int right_frames = 0;
    for (int i = 0; i < kFrames; ++i) {
      if (!is_frame(await_frame(*links[1][0]), length(i), i)) break;
      links[1][0]->release();
      ++right_frames;
    }
    sender.join();
    CHECK(right_frames == kFrames);
  }
}

TEST_CASE("frames that a peer sent before it closed can still be read; then it is lost") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    REQUIRE(try_send(*links[0][1], 100, 1));
    REQUIRE(try_send(*links[0][1], 200, 2));
    links[0][1].reset();
    Link& right = *links[1][0];
    CHECK(is_frame(await_frame(right), 100, 1));
    CHECK(right.health().ok());
    right.release();
    CHECK(is_frame(await_frame(right), 200, 2));
    right.release();
    CHECK(await_loss(right) == ErrorCode::kPeerLost);
    CHECK(right.health().error().message.find("rank 0") != std::string::npos);
  }
}

TEST_CASE("a sleeping reader is woken by a frame and by the loss of its peer") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    constexpr std::chrono::seconds kAtMost{20};
    const auto start = std::chrono::steady_clock::now();
    const auto has_time = [&] { return std::chrono::steady_clock::now() - start < kAtMost; };
    std::promise<void> is_read;
    std::thread sender([&, read = is_read.get_future()] {
      try_send(*links[0][1], 100, 1);
      CHECK(read.wait_for(kAtMost) == std::future_status::ready);
      links[0][1].reset();
    });
    Link& right = *links[1][0];
    while (right.peek().empty() && has_time()) right.wait_readable(kAtMost);
    CHECK(!right.peek().empty());
    if (!right.peek().empty()) right.release();
    is_read.set_value();
    while (right.health().ok() && has_time()) right.wait_readable(kAtMost);
    sender.join();
    CHECK(!right.health().ok());
    CHECK(has_time());
  }
}

TEST_CASE("a sleep ends at its limit if nothing arrives") {
  for (const auto& kind : kAllLinks) {
    CAPTURE(kind.name);
    LocalLinks links = kind.open(2);
    const auto start = std::chrono::steady_clock::now();
    links[1][0]->wait_readable(std::chrono::milliseconds{1});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{10});
    CHECK(links[1][0]->health().ok());
  }
}

TEST_CASE("links leave no descriptor open") {
  const size_t before = open_descriptors();
  for (const auto& kind : kAllLinks) {
    LocalLinks links = kind.open(4);
    CHECK(open_descriptors() >= before);
  }
  CHECK(open_descriptors() == before);
}
