#include "node/wire/control_channel.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace lockstep;

namespace {

struct ChannelPair {
  ControlChannel near;
  ControlChannel far;
};

ChannelPair connect() {
  auto fds = control_socket_pair();
  REQUIRE(fds.ok());
  return ChannelPair{ControlChannel(std::move(fds.value().first)),
                     ControlChannel(std::move(fds.value().second))};
}

void send_raw(const ControlChannel& channel, const void* bytes, size_t size) {
  REQUIRE(::send(channel.fd(), bytes, size, 0) == static_cast<ssize_t>(size));
}

}  // namespace

TEST_CASE("frames arrive whole and in order, empty ones too") {
  ChannelPair pair = connect();
  REQUIRE(pair.near.send(1, "one").ok());
  REQUIRE(pair.near.send(2, "").ok());
  REQUIRE(pair.far.fill().value());
  const auto first = pair.far.next();
  REQUIRE(first.value());
  CHECK(first.value()->type == 1);
  CHECK(first.value()->payload == "one");
  const auto second = pair.far.next();
  REQUIRE(second.value());
  CHECK(second.value()->type == 2);
  CHECK(second.value()->payload.empty());
  CHECK_FALSE(pair.far.next().value());
  CHECK_FALSE(pair.far.fill().value());
}

TEST_CASE("a frame may arrive byte by byte") {
  ChannelPair pair = connect();
  const std::string bytes(
      "\x04\0\0\0\x07"
      "abc",
      8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    CHECK_FALSE(pair.far.next().value());
    send_raw(pair.near, &bytes[i], 1);
    REQUIRE(pair.far.fill().value());
  }
  const auto frame = pair.far.next();
  REQUIRE(frame.value());
  CHECK(frame.value()->type == 7);
  CHECK(frame.value()->payload == "abc");
}

TEST_CASE("a frame larger than the socket's buffer is sent in parts without blocking") {
  ChannelPair pair = connect();
  std::string payload(5'000'000, 'x');
  payload.back() = 'y';
  REQUIRE(pair.near.send(3, payload).ok());
  CHECK(pair.near.has_outgoing());
  std::optional<ControlFrame> frame;
  for (int round = 0; !frame; ++round) {
    REQUIRE(round < 100'000);  // each moves some bytes
    REQUIRE(pair.near.flush().ok());
    REQUIRE(pair.far.fill().ok());
    frame = pair.far.next().value();
  }
  CHECK(frame->payload == payload);
  CHECK_FALSE(pair.near.has_outgoing());
}

TEST_CASE("an impossible length is an error") {
  for (uint32_t length : {uint32_t{0}, static_cast<uint32_t>(kControlFrameBytesMax + 1), ~0u}) {
    ChannelPair pair = connect();
    send_raw(pair.near, &length, sizeof(length));
    REQUIRE(pair.far.fill().value());
    const auto frame = pair.far.next();
    REQUIRE_FALSE(frame.ok());
    CHECK(frame.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a closed peer is an error for reading and for writing") {
  ChannelPair pair = connect();
  REQUIRE(pair.near.send(1, "last words").ok());
  pair.near.close();
  REQUIRE(pair.far.fill().value());
  CHECK(pair.far.next().value()->payload == "last words");
  CHECK(pair.far.fill().error().code == ErrorCode::kPeerLost);
  CHECK(pair.far.send(1, "hello").error().code == ErrorCode::kPeerLost);
  CHECK(pair.near.send(1, "hello").error().code == ErrorCode::kPeerLost);
}

TEST_CASE("a peer that reads nothing fills a bounded queue, and sending never blocks") {
  ChannelPair pair = connect();
  const std::string payload(kControlFrameBytesMax - 1, 'x');
  Status status = Ok{};
  int sent = 0;
  while (status.ok() && sent < 100) {
    status = pair.near.send(1, payload);
    ++sent;
  }
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kExhausted);
  CHECK(sent <= static_cast<int>(kControlQueueBytesMax / kControlFrameBytesMax) + 2);
  CHECK(pair.near.send(1, payload + "x").error().code == ErrorCode::kExhausted);
}

namespace {

// A pipe end, so that received descriptors can be identified.
std::vector<UniqueFd> pipe_ends() {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  std::vector<UniqueFd> ends;
  for (int fd : fds) ends.emplace_back(fd);
  return ends;
}

}  // namespace

TEST_CASE("descriptors arrive with their frame, after any number of bytes") {
  ChannelPair pair = connect();
  const std::string large(1 << 20, 'x');  // more than the socket accepts at once
  std::vector<UniqueFd> ends = pipe_ends();
  REQUIRE(pair.near.send(1, large).ok());
  REQUIRE(pair.near.send(2, "with", std::move(ends)).ok());
  REQUIRE(pair.near.send(3, "after").ok());
  for (int type = 1; type <= 3;) {
    REQUIRE(pair.near.flush().ok());
    REQUIRE(pair.far.fill().ok());
    while (const auto frame = pair.far.next().value()) {
      CHECK(frame->type == type);
      if (type++ != 2) continue;
      const std::vector<UniqueFd> fds = pair.far.take_fds();
      REQUIRE(fds.size() == 2);
      REQUIRE(::write(fds[1].get(), "!", 1) == 1);
      char byte = 0;
      CHECK(::read(fds[0].get(), &byte, 1) == 1);
      CHECK(byte == '!');
      CHECK((::fcntl(fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
  }
  CHECK(pair.far.take_fds().empty());
}

TEST_CASE("a peer that sends more descriptors than a worker has peers is refused") {
  ChannelPair pair = connect();
  for (size_t sent = 0; sent <= kControlFdsMax; sent += 2) {
    REQUIRE(pair.near.send(1, "", pipe_ends()).ok());
  }
  Result<bool> filled = true;
  while (filled.ok() && filled.value()) filled = pair.far.fill();
  REQUIRE_FALSE(filled.ok());
  CHECK(filled.error().code == ErrorCode::kCorrupt);
}
