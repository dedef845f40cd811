#include "net/frames/frame_connection.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/files/unique_fd.h"
#include "net/caller_gate.h"
#include "net/event_loop.h"
#include "net/frames/frame_call.h"
#include "net/frames/frame_server.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds kFramePatience{20};

// Lines that a test can wait for.
class Notes {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  bool waits_for(const std::string& part) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kFramePatience, [&] { return has(part); });
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }

 private:
  bool has(const std::string& part) const {
    for (const std::string& line : lines_) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

TlsIdentity new_identity() {
  return TlsIdentity::make(KeyPair::generate().value()).value();
}

// A server, its accepted connections, and calls to it; all on one loop.
struct Ends {
  explicit Ends(FrameServer::Options options = {}) {
    options.host = "127.0.0.1";
    loop->must_run([&] {
      server = std::move(
          FrameServer::listen(*loop, server_identity, options, [this](FrameConnection connection) {
            accepted = connection;
            notes.add("accepted");
          }).value());
      port = server->port();
    });
  }
  ~Ends() {
    loop->must_run([&] {
      call = {};
      accepted.close();
      called.close();
      accepted = called = {};
      server.reset();
    });
  }
  void connect(const FrameLimits& limits = {}) {
    loop->must_run([&] {
      call = FrameCall::start(*loop, client_identity, {"127.0.0.1", port}, limits,
                              [this](Result<FrameConnection> ready) {
                                if (!ready.ok()) return notes.add(ready.error().message);
                                called = ready.value();
                                notes.add("called");
                              });
    });
    REQUIRE(notes.waits_for("called"));
    REQUIRE(notes.waits_for("accepted"));
  }
  FrameConnection::Events noting(const std::string& who) {
    return {
        .on_frame =
            [this, who](const std::string& frame) {
              notes.add(who + " got " + std::to_string(frame.size()) + " " + frame.substr(0, 20));
            },
        .on_close = [this, who](const Error& error) { notes.add(who + ": " + error.message); },
        .on_drained = [this, who] { notes.add(who + " drained"); }};
  }

  Notes notes;
  TlsIdentity server_identity = new_identity(), client_identity = new_identity();
  std::unique_ptr<EventLoop> loop = EventLoop::start();
  std::unique_ptr<FrameServer> server;
  FrameCall call;
  FrameConnection accepted, called;
  uint16_t port = 0;
};

UniqueFd plain_socket(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  const timeval patience{20, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return fd;
}

// Reads until the other end closes; false if it does not.
bool is_closed_by_server(int fd) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = ::recv(fd, bytes, sizeof(bytes), 0);
    if (count > 0) continue;
    return count == 0 || errno == ECONNRESET;
  }
}

}  // namespace

TEST_CASE("frames: both ends know each other's key, share a secret, and receive each frame whole") {
  Ends ends;
  ends.connect();
  ends.loop->must_run([&] {
    CHECK(ends.called.peer_key() == ends.server_identity.public_key());
    CHECK(ends.accepted.peer_key() == ends.client_identity.public_key());
    CHECK(ends.called.session_secret() == ends.accepted.session_secret());
    CHECK(ends.accepted.peer_host() == "127.0.0.1");
    ends.accepted.set_events(ends.noting("server"));
    ends.called.set_events(ends.noting("client"));
    ends.accepted.trust();
    ends.called.trust();
    ends.called.send("");
    ends.called.send("a");
    ends.called.send(std::string(1 << 20, 'b'));
    ends.accepted.send("answer");
  });
  CHECK(ends.notes.waits_for("server got 0 "));
  CHECK(ends.notes.waits_for("server got 1 a"));
  CHECK(ends.notes.waits_for("server got 1048576 b"));
  CHECK(ends.notes.waits_for("client got 6 answer"));
  CHECK(ends.notes.waits_for("client drained"));
  ends.loop->must_run([&] { ends.called.finish(); });
  CHECK(ends.notes.waits_for("server: the other end closed the connection"));
}

TEST_CASE("frames: two sessions of the same ends have two secrets") {
  Ends ends;
  ends.connect();
  Digest first{};
  ends.loop->must_run([&] { first = ends.called.session_secret(); });
  Ends others;
  others.connect();
  others.loop->must_run([&] { CHECK(others.called.session_secret() != first); });
}

TEST_CASE("frames: frames sent before finish() arrive") {
  Ends ends;
  ends.connect();
  ends.loop->must_run([&] {
    ends.called.trust();
    ends.accepted.set_events(ends.noting("server"));
    ends.accepted.trust();
    ends.called.send(std::string(1 << 20, 'x'));
    ends.called.send("the last word");
    ends.called.finish();
  });
  CHECK(ends.notes.waits_for("the last word"));
  CHECK(ends.notes.waits_for("server: the other end closed"));
}

TEST_CASE("frames: a stranger's frame size and time are limited") {
  SUBCASE("a long frame") {
    Ends ends;
    ends.connect();
    ends.loop->must_run([&] {
      ends.accepted.set_events(ends.noting("server"));
      ends.called.send(std::string(5000, 'x'));
    });
    CHECK(ends.notes.waits_for("server: a frame of 5000 bytes arrived, at most 4096 are allowed"));
  }
  SUBCASE("silence") {
    Ends ends({.limits = {.trust_timeout = 100ms}});
    ends.connect();
    ends.loop->must_run([&] { ends.accepted.set_events(ends.noting("server")); });
    CHECK(ends.notes.waits_for("server: the other end did not introduce itself in time"));
  }
}

TEST_CASE("frames: peers that are silent or do not read are dropped") {
  SUBCASE("silent") {
    Ends ends({.limits = {.silence_max = 200ms}});
    ends.connect();
    ends.loop->must_run([&] {
      ends.accepted.set_events(ends.noting("server"));
      ends.accepted.trust();
    });
    CHECK(ends.notes.waits_for("server: nothing was heard for 200 ms"));
  }
  SUBCASE("too much queued") {
    Ends ends({.limits = {.unsent_bytes_max = 1 << 20}});
    ends.connect();
    ends.loop->must_run([&] {
      ends.called.pause();
      ends.accepted.set_events(ends.noting("server"));
      ends.accepted.trust();
      for (int i = 0; i < 200; ++i) ends.accepted.send(std::string(100'000, 'x'));
      CHECK(ends.accepted.unsent_bytes() <= 1 << 20);
    });
    CHECK(ends.notes.waits_for("server: the other end reads too slowly"));
  }
  SUBCASE("nothing sent") {
    Ends ends({.limits = {.unsent_bytes_max = 64 << 20, .silence_max = 0ms, .stall_max = 300ms}});
    FrameLimits patient;
    patient.silence_max = 0ms;
    ends.connect(patient);
    ends.loop->must_run([&] {
      ends.called.trust();
      ends.called.pause();
      ends.accepted.set_events(ends.noting("server"));
      ends.accepted.trust();
      for (int i = 0; i < 300; ++i) ends.accepted.send(std::string(100'000, 'x'));
    });
    CHECK(ends.notes.waits_for("server: the other end read nothing for 300 ms"));
  }
}

TEST_CASE("frames: a paused reader gets everything once it resumes") {
  Ends ends;
  ends.connect();
  ends.loop->must_run([&] {
    ends.called.set_events(ends.noting("client"));
    ends.called.trust();
    ends.called.pause();
    ends.accepted.trust();
    for (int i = 0; i < 20; ++i) ends.accepted.send(std::string(100'000, 'x'));
    ends.accepted.send("the end");
  });
  ends.loop->must_run([&] { ends.called.resume(); });
  CHECK(ends.notes.waits_for("client got 7 the end"));
}

TEST_CASE("frames: plain bytes and half a handshake are closed and counted") {
  Ends ends({.limits = {.handshake_timeout = 300ms}});
  const UniqueFd plain = plain_socket(ends.port);
  REQUIRE(::send(plain.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
  CHECK(is_closed_by_server(plain.get()));
  const UniqueFd silent = plain_socket(ends.port);
  CHECK(is_closed_by_server(silent.get()));
  ends.loop->must_run([&] { CHECK(ends.server->counts().failed == 2); });
  CHECK(ends.notes.count() == 0);
}

TEST_CASE("frames: the number of strangers is limited, and others are closed at once") {
  Ends ends({.strangers_max = 2});
  const UniqueFd first = plain_socket(ends.port), second = plain_socket(ends.port);
  const UniqueFd third = plain_socket(ends.port);
  CHECK(is_closed_by_server(third.get()));
  ends.loop->must_run([&] { CHECK(ends.server->counts().refused == 1); });
}

TEST_CASE("frames: a handler that throws loses its connection, and the server accepts the next") {
  Ends ends;
  ends.connect();
  ends.loop->must_run([&] {
    auto events = ends.noting("accepted");
    events.on_frame = [](const std::string&) { throw std::bad_alloc(); };
    ends.accepted.set_events(std::move(events));
    ends.called.set_events(ends.noting("called"));
    ends.called.send("one");
  });
  CHECK(ends.notes.waits_for("accepted: out of memory"));
  CHECK(ends.notes.waits_for("called: "));
  ends.notes.forget();
  ends.connect();
}

TEST_CASE("frames: a missing peer is an error within the time") {
  Notes notes;
  const auto loop = EventLoop::start();
  FrameCall call;
  for (const NetAddress& address :
       {NetAddress{"127.0.0.1", 1}, NetAddress{"no.such.name.invalid", 8601}}) {
    loop->must_run([&] {
      call = FrameCall::start(*loop, new_identity(), address, {},
                              [&](const Result<FrameConnection>& ready) {
                                notes.add(ready.ok() ? "?" : ready.error().message);
                              });
    });
    CHECK(notes.waits_for(address.text() + " was not reached"));
  }
  loop->must_run([&] { call.cancel(); });
}

TEST_CASE("addresses: host, port and IPv6 in all their forms") {
  const auto text = [](std::string_view input) {
    const auto parsed = parse_net_address(input, 8601);
    return parsed.ok() ? parsed.value().text() : "bad";
  };
  CHECK(text("anna") == "anna:8601");
  CHECK(text("10.0.0.2:99") == "10.0.0.2:99");
  CHECK(text("fe80::1%eth0") == "[fe80::1%eth0]:8601");
  CHECK(text("[::1]") == "[::1]:8601");
  CHECK(text("[::1]:99") == "[::1]:99");
  for (const char* bad : {"", ":99", "anna:", "anna:0", "anna:65536", "anna:9x", "[::1", "[]:9",
                          "[::1]x9", "a b", "a]", "http://a"}) {
    CHECK(text(bad) == "bad");
  }
}

TEST_CASE("caller gate: per address a burst, then a rate, within a bounded table") {
  CallerGate gate({.burst = 3, .per_second = 2, .addresses_max = 2});
  const auto now = CallerGate::Clock::time_point() + 1h;
  for (int i = 0; i < 3; ++i) CHECK(gate.admit("a", now));
  CHECK(!gate.admit("a", now));
  CHECK(gate.admit("b", now));
  CHECK(!gate.admit("c", now));  // a and b are remembered
  CHECK(gate.admit("a", now + 500ms));
  CHECK(!gate.admit("a", now + 500ms));
  CHECK(gate.admit("c", now + 2s));  // b has its full allowance again
  CHECK(gate.admit("a", now + 1h));
}

TEST_CASE("caller gate: a call that was not a stranger's is refunded, once") {
  CallerGate gate({.burst = 2, .per_second = 1, .addresses_max = 2});
  const auto now = CallerGate::Clock::time_point() + 1h;
  for (int i = 0; i < 20; ++i) {
    CHECK(gate.admit("member", now));
    gate.give_back("member", now);
  }
  gate.give_back("member", now);
  gate.give_back("nobody", now);
  CHECK(gate.admit("member", now));
  CHECK(gate.admit("member", now));
  CHECK(!gate.admit("member", now));
}

TEST_CASE("frames: trusted peers may call without limit, strangers are rate-limited") {
  Ends ends({.calls = {.burst = 2, .per_second = 0}});
  for (int i = 0; i < 5; ++i) {
    ends.connect();
    ends.loop->must_run([&] { ends.accepted.trust(); });
    ends.notes.forget();
  }
  const UniqueFd first = plain_socket(ends.port), second = plain_socket(ends.port);
  const UniqueFd third = plain_socket(ends.port);
  CHECK(is_closed_by_server(third.get()));
  ends.loop->must_run([&] { CHECK(ends.server->counts().refused == 1); });
}

TEST_CASE("event loop: timers run once, in time, and not after cancellation") {
  Notes notes;
  const auto loop = EventLoop::start();
  EventLoop::Timer kept, dropped;
  loop->must_run([&] {
    kept = loop->call_after(20ms, [&] { notes.add("kept"); });
    dropped = loop->call_after(10ms, [&] { notes.add("dropped"); });
    dropped.cancel();
  });
  CHECK(notes.waits_for("kept"));
  CHECK(notes.count() == 1);
  loop->must_run([&] { kept.cancel(); });
}
