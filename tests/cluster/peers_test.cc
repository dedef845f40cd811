#include "cluster/peers/peers.h"

#include <doctest/doctest.h>

#include <boost/asio/ip/address.hpp>

#include "base/byte_text.h"
#include "cluster/cluster_fixture.h"
#include "cluster/join/blocking_connection.h"
#include "net/frames/frame_server.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

// A machine outside the cluster: it can open TLS with its own key, and send anything.
struct Stranger {
  Stranger() : key(KeyPair::generate().value()), tls(TlsIdentity::make(key).value()) {}
  ~Stranger() = default;

  BlockingConnection call(const NetAddress& address) {
    auto connection = BlockingConnection::call(*loop, tls, address, {});
    REQUIRE_MESSAGE(connection.ok(), (connection.ok() ? "" : connection.error().message));
    return std::move(connection.value());
  }
  // The node's answer to this first frame.
  Result<std::string> answer_to(const NetAddress& address, const std::string& frame) {
    BlockingConnection connection = call(address);
    connection.send(frame);
    return connection.receive(kPatience);
  }

  std::unique_ptr<EventLoop> loop = EventLoop::start();
  KeyPair key;
  TlsIdentity tls;
};

bool is_a_name(const std::string& host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return error.failed();
}

}  // namespace

TEST_CASE("peers: two nodes meet by --join, talk, and notice that the other is gone") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a, of_b;
  TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
  {
    TestNode b(member_identity(folder, "b", key), local_options({a.address()}), of_b.events());
    REQUIRE(of_a.waits_for("+b"));
    REQUIRE(of_b.waits_for("+a"));
    for (int i = 0; i < 100; ++i) a.peers->send(b.identity.id(), "m" + std::to_string(i));
    b.peers->send_to_all(std::string(Peers::kMessageBytesMax, 'x'));
    CHECK(of_b.waits_for("a: m99"));
    CHECK(of_b.count("a: m0") == 1);
    CHECK(of_a.waits_for("b: " + std::string(Peers::kMessageBytesMax, 'x')));
    const auto report = a.peers->report();
    REQUIRE(report.connected.size() == 1);
    CHECK(report.connected[0].name == "b");
    CHECK(report.connected[0].version == "0.1.0-test");
    CHECK(report.connected[0].address.port == b.peers->port());
    CHECK(comes_true([&] {
      const auto peers = a.peers->report().connected;
      return peers.size() == 1 && peers[0].round_trip.count() > 0;
    }));
  }
  CHECK(of_a.waits_for("-b"));
  CHECK(of_a.count("+b") == 1);
  REQUIRE(a.peers->report().absent.size() == 1);
  CHECK(a.peers->report().absent[0].name == "b");
}

TEST_CASE(
    "peers: a node that is joined by its name is known by a numeric address, as ranks need it") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a, of_b;
  TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
  TestNode b(member_identity(folder, "b", key), local_options({{"localhost", a.peers->port()}}),
             of_b.events());
  REQUIRE(of_b.waits_for("+a"));
  const auto connected = b.peers->report().connected;
  REQUIRE(connected.size() == 1);
  CHECK(!is_a_name(connected[0].address.host));
  CHECK(connected[0].address.port == a.peers->port());
}

TEST_CASE("peers: nodes that each know one address all meet, over one connection for each pair") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary diaries[4];
  TestNode a(member_identity(folder, "n0", key), local_options(), diaries[0].events());
  TestNode b(member_identity(folder, "n1", key), local_options({a.address()}), diaries[1].events());
  TestNode c(member_identity(folder, "n2", key), local_options({a.address()}), diaries[2].events());
  TestNode d(member_identity(folder, "n3", key), local_options({a.address()}), diaries[3].events());
  for (int node = 0; node < 4; ++node) {
    for (int other = 0; other < 4; ++other) {
      if (other == node) continue;
      CHECK(diaries[node].waits_for("+n" + std::to_string(other)));
      CHECK(diaries[node].count("+n" + std::to_string(other)) == 1);
      CHECK(diaries[node].count("-n" + std::to_string(other)) == 0);
    }
  }
}

TEST_CASE("peers: two nodes that call each other at the same time end with one connection") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  for (int round = 0; round < 5; ++round) {
    Diary of_a, of_b;
    TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
    TestNode b(member_identity(folder, "b", key), local_options(), of_b.events());
    a.peers->join(b.address());
    b.peers->join(a.address());
    REQUIRE(of_a.waits_for("+b"));
    REQUIRE(of_b.waits_for("+a"));
    a.peers->send(b.identity.id(), "to b");
    b.peers->send(a.identity.id(), "to a");
    CHECK(of_b.waits_for("a: to b"));
    CHECK(of_a.waits_for("b: to a"));
    CHECK(of_a.count("-b") == 0);
    CHECK(of_b.count("-a") == 0);
  }
}

TEST_CASE("peers: a restarted node connects again, from remembered addresses") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a;
  TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
  const Identity b = member_identity(folder, "b", key);
  {
    Diary of_b;
    TestNode first(b, local_options({a.address()}), of_b.events());
    REQUIRE(of_a.waits_for("+b"));
    REQUIRE(of_b.waits_for("+a"));
  }
  REQUIRE(of_a.waits_for("-b"));
  TestNode second(b, local_options());  // without --join
  CHECK(of_a.waits_for("+b", 2));
}

TEST_CASE("peers: a node of another cluster can neither connect nor learn a name") {
  const TemporaryFolder folder;
  Diary of_a, of_b;
  TestNode a(member_identity(folder, "a", new_cluster()), local_options(), of_a.events());
  TestNode b(member_identity(folder, "b", new_cluster()), local_options({a.address()}),
             of_b.events());
  CHECK(comes_true([&] { return a.peers->report().strangers_refused >= 1; }));
  CHECK(a.peers->report().connected.empty());
  CHECK(b.peers->report().connected.empty());
  CHECK(a.peers->report().absent.empty());
  CHECK(b.peers->report().absent.empty());
  CHECK(of_a.count("+b") + of_b.count("+a") == 0);
}

TEST_CASE("peers: a stranger without a key is disconnected without an answer, whatever it sends") {
  const TemporaryFolder folder;
  TestNode a(member_identity(folder, "a", new_cluster()), local_options());
  Stranger stranger;
  const std::string range("\1\0\1\0", 4);
  for (const std::string& frame :
       {std::string("LSG1M") + range + std::string(32, 'x'), std::string("LSG1M"),
        std::string("LSG1X"), std::string(""), std::string("m{\"stop\":true}"),
        std::string("{\"list\":true}"), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const auto answer = stranger.answer_to(a.address(), frame);
    REQUIRE(!answer.ok());
    CHECK(answer.error().code == ErrorCode::kPeerLost);
  }
  CHECK(a.peers->report().strangers_refused == 7);
  CHECK(a.peers->report().connected.empty());
}

TEST_CASE("peers: a member's first frame is invalid in another session") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  TestNode a(member_identity(folder, "a", key), local_options());
  // A member calls this stranger, which has no key but listens at the `--join` address. The
  // stranger gets the member's first frame and replays it to another member.
  Stranger stranger;
  std::string heard;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_ptr<FrameServer> server;
  FrameConnection from_member;
  uint16_t port = 0;
  stranger.loop->must_run([&] {
    server =
        std::move(FrameServer::listen(*stranger.loop, stranger.tls, {.host = "127.0.0.1"},
                                      [&](FrameConnection connection) {
                                        from_member = connection;
                                        connection.set_events({.on_frame = [&](std::string frame) {
                                          const std::lock_guard lock(mutex);
                                          heard = std::move(frame);
                                          changed.notify_all();
                                        }});
                                      })
                      .value());
    port = server->port();
  });
  a.peers->join({"127.0.0.1", port});
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, kPatience, [&] { return !heard.empty(); }));
  }
  CHECK(heard.size() == 5 + 4 + 32);  // neither a name nor the cluster's id
  TestNode b(member_identity(folder, "b", key), local_options());
  CHECK(stranger.answer_to(b.address(), heard).error().code == ErrorCode::kPeerLost);
  CHECK(stranger.answer_to(a.address(), heard).error().code == ErrorCode::kPeerLost);
  CHECK(b.peers->report().strangers_refused == 1);
  stranger.loop->must_run([&] {
    from_member.close();
    from_member = {};
    server.reset();
  });
}

TEST_CASE("peers: incompatible versions are reported on both sides, and not connected") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  TestNode a(member_identity(folder, "a", key), local_options());
  auto newer = local_options({a.address()});
  newer.protocols = {.oldest = kProtocols.newest + 1, .newest = kProtocols.newest + 2};
  newer.version = "2.0.0";
  TestNode b(member_identity(folder, "b", key), newer);
  CHECK(comes_true([&] { return a.peers->report().unusable.size() == 1; }));
  CHECK(comes_true([&] { return b.peers->report().unusable.size() == 1; }));
  const auto of_a = a.peers->report().unusable[0];
  CHECK(of_a.peer.name == "b");
  CHECK(of_a.reason == "it runs lockstep 2.0.0, which is too new for this node: update this node");
  const auto of_b = b.peers->report().unusable[0];
  CHECK(of_b.peer.name == "a");
  CHECK(of_b.reason == "it runs lockstep 0.1.0-test, which is too old for this node: update it");
  CHECK(a.peers->report().connected.empty());
  auto wider = local_options({a.address()});
  wider.protocols = {.oldest = 1, .newest = 9};
  TestNode c(member_identity(folder, "c", key), wider);
  CHECK(comes_true([&] { return a.peers->report().connected.size() == 1; }));
}

TEST_CASE("peers: a node that falls silent is lost within the time") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a;
  auto options = local_options();
  options.silence_max = 500ms;
  TestNode a(member_identity(folder, "a", key), options, of_a.events());
  auto mute = local_options({a.address()});
  mute.ping_period = 1h;
  mute.silence_max = 0ms;
  TestNode b(member_identity(folder, "b", key), mute);
  REQUIRE(of_a.waits_for("+b"));
  CHECK(of_a.waits_for("-b"));
}

TEST_CASE("peers: this node's own address, a dead one and an invalid name do no harm") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a;
  TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
  a.peers->join(a.address());
  a.peers->join({"127.0.0.1", 1});
  a.peers->join({"no such name.invalid", 8601});
  TestNode b(member_identity(folder, "b", key), local_options({a.address()}));
  CHECK(of_a.waits_for("+b"));
  CHECK(a.peers->report().connected.size() == 1);
}

TEST_CASE("peers: a port in use is an error that says so") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  TestNode a(member_identity(folder, "a", key), local_options());
  auto options = local_options();
  options.port = a.peers->port();
  const auto loop = EventLoop::start();
  const auto started = Peers::start(*loop, member_identity(folder, "b", key), options, {});
  REQUIRE(!started.ok());
  CHECK(started.error().code == ErrorCode::kExhausted);
}

TEST_CASE("peers: a stream is a connection of its own, and ends with the node") {
  const TemporaryFolder folder;
  const ClusterKey key = new_cluster();
  Diary of_a, of_b, stream;
  auto events = of_b.events();
  FrameConnection incoming;  // used on b's loop
  events.on_stream = [&](const NodeId&, const Channel& channel, FrameConnection connection) {
    stream.add(channel.kind + " " + channel.purpose);
    incoming = connection;
    connection.set_events({.on_frame =
                               [&](std::string frame) {
                                 stream.add("got " + std::to_string(frame.size()));
                                 incoming.send("thanks");
                               },
                           .on_close = [&](const Error&) { stream.add("closed at b"); }});
  };
  TestNode a(member_identity(folder, "a", key), local_options(), of_a.events());
  auto b = std::make_unique<TestNode>(member_identity(folder, "b", key),
                                      local_options({a.address()}), events);
  REQUIRE(of_a.waits_for("+b"));
  FrameConnection outgoing;  // used on a's loop
  a.peers->open_stream(
      b->identity.id(), {.kind = "pieces", .purpose = "file 7"},
      [&](Result<FrameConnection> ready) {
        if (!ready.ok()) return stream.add(ready.error().message);
        outgoing = ready.value();
        outgoing.set_events({.on_frame = [&](const std::string& frame) { stream.add(frame); },
                             .on_close = [&](const Error&) { stream.add("closed at a"); }});
        outgoing.send(std::string(1 << 20, 'p'));
      });
  CHECK(stream.waits_for("pieces file 7"));
  CHECK(stream.waits_for("got 1048576"));
  CHECK(stream.waits_for("thanks"));
  // b takes streams, a does not.
  b->peers->open_stream(a.identity.id(), {.kind = "pieces"},
                        [&](const Result<FrameConnection>& ready) {
                          stream.add(ready.ok() ? "taken" : ready.error().message);
                        });
  CHECK(stream.waits_for("this node does not accept streams"));
  b->loop->must_run([&] { incoming = {}; });
  b.reset();
  CHECK(stream.waits_for("closed at a"));
  a.loop->must_run([&] { outgoing = {}; });
}
