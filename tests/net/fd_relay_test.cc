#include "net/frames/fd_relay.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "net/frames/frame_call.h"
#include "net/frames/frame_server.h"

using namespace lockstep;

namespace {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    ours.reset(fds[0]);
    relayed.reset(fds[1]);
    const timeval patience{20, 0};
    ::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  }
  void write(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count =
          ::send(ours.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }
  std::string read(size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t count = ::recv(ours.get(), bytes.data(), size, MSG_WAITALL);
    bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return bytes;
  }
  UniqueFd ours, relayed;
};

}  // namespace

TEST_CASE("fd relay: two socket pairs on two machines act as one, in both directions, to the end") {
  const TlsIdentity identity = TlsIdentity::make(KeyPair::generate().value()).value();
  const auto loop = EventLoop::start();
  SocketPair near, far;
  std::unique_ptr<FrameServer> server;
  FrameCall call;
  FdRelay near_relay, far_relay;
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  const auto on_end = [&](const Error&) {
    const std::lock_guard lock(mutex);
    ++ended;
    changed.notify_all();
  };
  loop->must_run([&] {
    server = std::move(FrameServer::listen(*loop, identity, {.host = "127.0.0.1"},
                                           [&](FrameConnection connection) {
                                             connection.trust();
                                             far_relay = FdRelay::start(
                                                 *loop, std::move(far.relayed), connection, on_end);
                                           })
                           .value());
    call = FrameCall::start(
        *loop, identity, {"127.0.0.1", server->port()}, {}, [&](Result<FrameConnection> ready) {
          if (!ready.ok()) return;
          ready.value().trust();
          near_relay = FdRelay::start(*loop, std::move(near.relayed), ready.value(), on_end);
        });
  });
  near.write("hello");
  CHECK(far.read(5) == "hello");
  far.write("answer");
  CHECK(near.read(6) == "answer");
  std::string large(5 << 20, 'x');
  large.back() = 'y';
  std::thread writer([&] { near.write(large); });  // far more than any buffer on the way
  CHECK(far.read(large.size()) == large);
  writer.join();
  near.write("last");
  near.ours.reset();
  CHECK(far.read(4) == "last");
  CHECK(far.read(1).empty());  // closed
  {
    std::unique_lock lock(mutex);
    CHECK(changed.wait_for(lock, std::chrono::seconds(20), [&] { return ended == 2; }));
  }
  loop->must_run([&] {
    near_relay.stop();
    far_relay.stop();
    call.cancel();
    server.reset();
  });
}

TEST_CASE("fd relay: a connection that closed before it started counts as a normal end") {
  const TlsIdentity identity = TlsIdentity::make(KeyPair::generate().value()).value();
  const auto loop = EventLoop::start();
  SocketPair near;
  std::unique_ptr<FrameServer> server;
  FrameCall call;
  FdRelay relay;
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false;
  loop->must_run([&] {
    server = std::move(
        FrameServer::listen(*loop, identity, {.host = "127.0.0.1"}, [](const FrameConnection&) {
        }).value());
    call = FrameCall::start(
        *loop, identity, {"127.0.0.1", server->port()}, {}, [&](Result<FrameConnection> ready) {
          if (!ready.ok()) return;
          ready.value().close();
          relay = FdRelay::start(*loop, std::move(near.relayed), ready.value(), [&](const Error&) {
            const std::lock_guard lock(mutex);
            has_ended = true;
            changed.notify_all();
          });
        });
  });
  {
    std::unique_lock lock(mutex);
    CHECK(changed.wait_for(lock, std::chrono::seconds(20), [&] { return has_ended; }));
  }
  CHECK(near.read(1).empty());
  loop->must_run([&] {
    relay.stop();
    call.cancel();
    server.reset();
  });
}

TEST_CASE(
    "fd relay: one end says why its descriptor ended, after all bytes, and the relay survives") {
  const TlsIdentity identity = TlsIdentity::make(KeyPair::generate().value()).value();
  const auto loop = EventLoop::start();
  SocketPair near, far;
  std::unique_ptr<FrameServer> server;
  FrameCall call;
  FdRelay near_relay, far_relay;
  FrameConnection far_connection;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Error> why;
  loop->must_run([&] {
    const auto say = [&](const Error&) { FdRelay::say_why(far_connection, "was killed"); };
    server = std::move(FrameServer::listen(*loop, identity, {.host = "127.0.0.1"},
                                           [&, say](FrameConnection connection) {
                                             connection.trust();
                                             far_connection = connection;
                                             far_relay = FdRelay::start_with_reason(
                                                 *loop, std::move(far.relayed), connection, say);
                                           })
                           .value());
    call = FrameCall::start(*loop, identity, {"127.0.0.1", server->port()}, {},
                            [&](Result<FrameConnection> ready) {
                              if (!ready.ok()) return;
                              ready.value().trust();
                              near_relay = FdRelay::start(*loop, std::move(near.relayed),
                                                          ready.value(), [&](const Error& error) {
                                                            const std::lock_guard lock(mutex);
                                                            why = error;
                                                            changed.notify_all();
                                                          });
                            });
  });
  far.write("last words");
  CHECK(near.read(10) == "last words");
  far.ours.reset();
  near.write(std::string(1 << 16, 'x'));  // in flight to a socket that is never read
  CHECK(near.read(1).empty());
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return why.has_value(); }));
    CHECK(why->code == ErrorCode::kCancelled);
    CHECK(why->message == "was killed");
  }
  loop->must_run([&] {
    near_relay.stop();
    far_relay.stop();
    far_connection = {};
    call.cancel();
    server.reset();
  });
}
