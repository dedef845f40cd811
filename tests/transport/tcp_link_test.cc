// A peer that sends garbage over TCP, or dies.
#include "transport/tcp/tcp_link.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/threads/wait.h"
#include "transport/tcp/socket.h"

using namespace lockstep;

namespace {

// The link of rank 1 to rank 0, and rank 0's end as a plain socket. A pair of local sockets acts as
// the connection.
struct RawSocket {
  UniqueFd socket;
  std::unique_ptr<Link> link;

  RawSocket() {
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

// A link that encrypts, one that decrypts, and the test between them.
struct Tapped {
  UniqueFd from_sender, to_receiver;
  std::unique_ptr<Link> sender, receiver;

  explicit Tapped(AeadCipher cipher) {
    LinkKeys keys{.cipher = cipher};
    REQUIRE(fill_random(keys.send).ok());
    REQUIRE(fill_random(keys.receive).ok());
    const LinkKeys other{cipher, keys.receive, keys.send};
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    from_sender.reset(fds[0]);
    sender = std::move(TcpLink::open(UniqueFd(fds[1]), {.peer = 1, .keys = keys}).value());
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    to_receiver.reset(fds[0]);
    receiver = std::move(TcpLink::open(UniqueFd(fds[1]), {.peer = 0, .keys = other}).value());
  }
  // The wire bytes of a frame with `bytes` sevens.
  std::vector<std::byte> send(size_t bytes) {
    const auto frame = sender->acquire(bytes);
    std::memset(frame.data(), 7, bytes);
    sender->post();
    std::vector<std::byte> sent(frame_slot_bytes(bytes));
    REQUIRE(::recv(from_sender.get(), sent.data(), sent.size(), MSG_WAITALL) ==
            static_cast<ssize_t>(sent.size()));
    return sent;
  }
  std::span<const std::byte> deliver(const std::vector<std::byte>& bytes) {
    REQUIRE(::send(to_receiver.get(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    return receiver->peek();
  }
};

constexpr AeadCipher kCiphers[] = {AeadCipher::kAes128Gcm, AeadCipher::kChaCha20Poly1305};

}  // namespace

#ifdef TCP_CONGESTION
TEST_CASE("no socket of a link is paced, whatever the system's default") {
  const auto socket = open_tcp_socket(AF_INET);
  REQUIRE(socket.ok());
  char name[16] = {};
  socklen_t length = sizeof(name) - 1;
  REQUIRE(::getsockopt(socket.value().get(), IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0);
  CHECK_MESSAGE(std::string(name).find("bbr") == std::string::npos, name);
}
#endif

TEST_CASE("a frame that arrives byte by byte is read when it is complete") {
  RawSocket peer;
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
    RawSocket peer;
    peer.write(header, 128);
    CHECK(peer.await_error() == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a connection that ends inside a frame is a lost peer, not a short frame") {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{191}}) {
    RawSocket peer;
    peer.write({.epoch = 7, .length = 100, .sequence = 0}, bytes);
    peer.socket.reset();
    CHECK(peer.await_error() == ErrorCode::kPeerLost);
    CHECK(peer.link->health().error().message.find("inside a frame") != std::string::npos);
  }
}

TEST_CASE("sending to a closed peer is an error, not a signal") {
  RawSocket peer;
  peer.socket.reset();
  REQUIRE(!peer.link->acquire(100).empty());
  peer.link->post();
  CHECK(peer.await_error() == ErrorCode::kPeerLost);
  CHECK(!peer.link->flush());
}

TEST_CASE("a peer process that exits or is killed is lost at once") {
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    RawSocket peer;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (!is_killed) ::_exit(0);
      for (;;) ::pause();
    }
    peer.socket.reset();  // the child has the only remaining end
    if (is_killed) {
      CHECK(peer.link->peek().empty());
      CHECK(peer.link->health().ok());
      ::kill(child, SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(peer.await_error() == ErrorCode::kPeerLost);
  }
}

TEST_CASE("an encrypted frame hides its bytes and arrives unchanged") {
  for (const AeadCipher cipher : kCiphers) {
    Tapped tapped(cipher);
    std::vector<std::byte> before;
    for (int i = 0; i < 3; ++i) {
      const auto sent = tapped.send(100);
      const std::vector<std::byte> sevens(8, std::byte{7});
      CHECK(std::search(sent.begin(), sent.end(), sevens.begin(), sevens.end()) == sent.end());
      CHECK(sent != before);  // the same plaintext gives different bytes
      before = sent;
      const auto frame = tapped.deliver(sent);
      REQUIRE(frame.size() == 100);
      CHECK(std::count(frame.begin(), frame.end(), std::byte{7}) == 100);
      tapped.receiver->release();
    }
  }
}

TEST_CASE("a changed bit of an encrypted frame breaks the link with a sentence") {
  for (const AeadCipher cipher : kCiphers) {
    for (const size_t byte : {size_t{48}, size_t{63}, size_t{64}, size_t{163}}) {
      CAPTURE(byte);
      Tapped tapped(cipher);
      auto sent = tapped.send(100);
      sent[byte] ^= std::byte{1};
      CHECK(tapped.deliver(sent).empty());
      REQUIRE(!tapped.receiver->health().ok());
      CHECK(tapped.receiver->health().error().code == ErrorCode::kCorrupt);
      CHECK(tapped.receiver->health().error().message ==
            "rank 0: a frame was not sealed by it, or was changed in transit");
      CHECK(tapped.deliver(tapped.send(100)).empty());  // and stays broken
    }
  }
}

TEST_CASE("a truncated, repeated, missing or foreign encrypted frame is detected") {
  const auto broken = [](Tapped& tapped, const std::vector<std::byte>& bytes) {
    return tapped.deliver(bytes).empty() && !tapped.receiver->health().ok() &&
           tapped.receiver->health().error().code == ErrorCode::kCorrupt;
  };
  for (const AeadCipher cipher : kCiphers) {
    Tapped shortened(cipher), repeated(cipher), left_out(cipher), stranger(cipher), other(cipher);
    auto sent = shortened.send(100);
    sent[4] = std::byte{99};
    CHECK(broken(shortened, sent));
    sent = repeated.send(100);
    REQUIRE(!repeated.deliver(sent).empty());
    repeated.receiver->release();
    CHECK(broken(repeated, sent));
    left_out.send(100);
    CHECK(broken(left_out, left_out.send(100)));
    CHECK(broken(stranger, other.send(100)));
    // A frame with another number under a matching forged header.
    Tapped moved(cipher);
    moved.send(100);
    sent = moved.send(100);
    sent[8] = std::byte{0};
    CHECK(broken(moved, sent));
  }
}
