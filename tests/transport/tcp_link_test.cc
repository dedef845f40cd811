// A peer that sends nonsense over TCP, or dies.
#include "transport/tcp_link.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>
#include <vector>

#include "base/wait.h"

using namespace lockstep;

namespace {

// The link of rank 1 to rank 0, and rank 0's end as a plain socket. A pair of local sockets behaves
// as a connection.
struct RawPeer {
  UniqueFd socket;
  std::unique_ptr<Link> link;

  RawPeer() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    socket.reset(fds[0]);
    link = std::move(TcpLink::open(UniqueFd(fds[1]), {.peer = 0, .epoch = 7}).value());
  }
  void write(FrameHeader header, size_t bytes) {
    std::vector<std::byte> slot(bytes);
    std::memcpy(slot.data(), &header, std::min(bytes, sizeof(header)));
    REQUIRE(::send(socket.get(), slot.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  }
  ErrorCode await_error() {
    Wait wait(std::chrono::milliseconds{20'000});
    while (link->health().ok()) {
      CHECK(link->peek().empty());
      REQUIRE(wait.pause("error").ok());
    }
    CHECK(link->health().error().message.find("rank 0") != std::string::npos);
    return link->health().error().code;
  }
};

}  // namespace

TEST_CASE("a frame that comes in single bytes is read when it is whole") {
  RawPeer peer;
  std::byte slot[128]{};
  const FrameHeader header{.epoch = 7, .length = 5, .sequence = 0};
  std::memcpy(slot, &header, sizeof(header));
  for (const std::byte& byte : slot) {
    CHECK(peer.link->peek().empty());
    REQUIRE(::send(peer.socket.get(), &byte, 1, 0) == 1);
  }
  CHECK(peer.link->peek().size() == 5);
}

TEST_CASE("a frame of another epoch, sequence or length breaks a TCP link") {
  const FrameHeader bad[] = {
      {.epoch = 6, .length = 64, .sequence = 0},
      {.epoch = 7, .length = 64, .sequence = 1},
      {.epoch = 7, .length = 0, .sequence = 0},
      {.epoch = 7, .length = kFrameBytesMax + 1, .sequence = 0},
      {.epoch = 7, .length = 0xffff'ffff, .sequence = 0},
  };
  for (const FrameHeader& header : bad) {
    CAPTURE(header.epoch);
    CAPTURE(header.length);
    RawPeer peer;
    peer.write(header, 128);
    CHECK(peer.await_error() == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a connection that ends inside a frame is a lost peer, not a short frame") {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{191}}) {
    RawPeer peer;
    peer.write({.epoch = 7, .length = 100, .sequence = 0}, bytes);
    peer.socket.reset();
    CHECK(peer.await_error() == ErrorCode::kPeerLost);
    CHECK(peer.link->health().error().message.find("inside a frame") != std::string::npos);
  }
}

TEST_CASE("sending to a peer that is gone is an error, not a signal") {
  RawPeer peer;
  peer.socket.reset();
  REQUIRE(!peer.link->acquire(100).empty());
  peer.link->post();
  CHECK(peer.await_error() == ErrorCode::kPeerLost);
  CHECK(!peer.link->flush());
}

TEST_CASE("a peer process that exits or is killed is lost at once") {
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    RawPeer peer;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (!is_killed) ::_exit(0);
      for (;;) ::pause();
    }
    peer.socket.reset();  // the child has the only other end
    if (is_killed) {
      CHECK(peer.link->peek().empty());
      CHECK(peer.link->health().ok());
      ::kill(child, SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(peer.await_error() == ErrorCode::kPeerLost);
  }
}
