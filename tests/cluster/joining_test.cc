// Joining over loopback: a machine without a key, a node that shows PINs, and attackers between
// them.
#include <doctest/doctest.h>

#include <atomic>

#include "base/byte_text.h"
#include "cluster/cluster_fixture.h"
#include "cluster/join/blocking_connection.h"
#include "cluster/join/join_cluster.h"
#include "cluster/join/join_frames.h"
#include "net/frames/frame_call.h"
#include "net/frames/frame_server.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

uint64_t seconds_from_now(int seconds) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count() +
                               seconds);
}

struct Joining {
  TemporaryFolder folder;
  ClusterKey key = new_cluster();
  TestNode host{member_identity(folder, "host", key), local_options()};
  std::unique_ptr<EventLoop> loop = EventLoop::start();
  Identity joiner = open_identity(folder, "joiner");

  JoinRequest request() const { return {.address = host.address(), .version = "0.1.0-test"}; }
  Result<ClusterKey> join(const JoinRequest& request) const {
    return join_cluster(*loop, joiner, request);
  }
  std::string shown_pin() const {
    const auto pins = host.peers->report().pins;
    return pins.empty() ? "" : pins.back().pin;
  }
};

}  // namespace

TEST_CASE("joining: the PIN that the node shows brings the cluster's key") {
  Joining joining;
  auto request = joining.request();
  std::string offered;
  request.ask_pin = [&](const JoinRequest::Offer& offer) {
    offered = offer.node_name + " " + offer.node_id;
    REQUIRE(joining.host.peers->report().pins.size() == 1);
    CHECK(joining.host.peers->report().pins[0].asker.find("joiner") != std::string::npos);
    return joining.shown_pin().insert(4, " ");
  };
  const auto key = joining.join(request);
  REQUIRE_MESSAGE(key.ok(), (key.ok() ? "" : key.error().message));
  CHECK(key.value() == joining.key);
  CHECK(offered == "host " + joining.host.identity.id().short_text());
  CHECK(joining.host.peers->report().pins.empty());
  // With the key it is a node like any other.
  REQUIRE(joining.joiner.join_cluster(key.value()).ok());
  Diary diary;
  TestNode node(joining.joiner, local_options({joining.host.address()}), diary.events());
  CHECK(diary.waits_for("+host"));
}

TEST_CASE("joining: a wrong PIN is refused and the right one is used up by it") {
  Joining joining;
  auto request = joining.request();
  std::string right;
  request.ask_pin = [&](const JoinRequest::Offer&) {
    right = joining.shown_pin();
    return right == "00000000" ? "00000001" : "00000000";
  };
  auto key = joining.join(request);
  REQUIRE(!key.ok());
  CHECK(key.error().message.find("the PIN was wrong") != std::string::npos);
  CHECK(joining.host.peers->report().pins.empty());
  request.ask_pin = [&](const JoinRequest::Offer&) { return right; };
  CHECK(!joining.join(request).ok());
}

TEST_CASE("joining: a machine that asks too often gets no PIN") {
  Joining joining;
  auto request = joining.request();
  request.ask_pin = [](const JoinRequest::Offer&) { return std::nullopt; };
  for (int i = 0; i < 3; ++i) CHECK(joining.join(request).error().code == ErrorCode::kCancelled);
  const auto fourth = joining.join(request);
  REQUIRE(!fourth.ok());
  CHECK(fourth.error().message.find("too many machines") != std::string::npos);
}

TEST_CASE("joining: a token of the cluster is enough, until it expires") {
  Joining joining;
  auto request = joining.request();
  request.token = make_join_token(joining.key, seconds_from_now(60)).value();
  const auto key = joining.join(request);
  REQUIRE_MESSAGE(key.ok(), (key.ok() ? "" : key.error().message));
  CHECK(key.value() == joining.key);
  request.token = make_join_token(joining.key, seconds_from_now(-1)).value();
  CHECK(joining.join(request).error().message.find("expired") != std::string::npos);
  request.token->expires_s = seconds_from_now(60);  // a forged longer lifetime
  CHECK(joining.join(request).error().message.find("not from this cluster") != std::string::npos);
  request.token = make_join_token(new_cluster(), seconds_from_now(60)).value();
  CHECK(joining.join(request).error().message.find("not from this cluster") != std::string::npos);
}

namespace {

// A man in the middle: it accepts the joiner's connection with its own key and forwards every frame
// to the real node and back.
class Middle {
 public:
  explicit Middle(const NetAddress& victim) {
    loop_->must_run([&] {
      server_ = std::move(FrameServer::listen(*loop_, tls_, {.host = "127.0.0.1"},
                                              [this, victim](FrameConnection connection) {
                                                take(std::move(connection), victim);
                                              })
                              .value());
    });
  }
  ~Middle() {
    loop_->must_run([&] {
      near_.close();
      far_.close();
      near_ = far_ = {};
      call_.cancel();
      server_.reset();
    });
  }
  NetAddress address() const { return {"127.0.0.1", server_->port()}; }
  int passed() const { return passed_.load(); }

 private:
  void take(FrameConnection connection, const NetAddress& victim) {
    near_ = std::move(connection);
    near_.set_trust_timeout(kPatience);
    call_ = FrameCall::start(*loop_, tls_, victim, {}, [this](Result<FrameConnection> ready) {
      if (!ready.ok()) return near_.close();
      far_ = std::move(ready.value());
      far_.set_trust_timeout(kPatience);
      pass(near_, far_);
      pass(far_, near_);
    });
  }
  void pass(FrameConnection& from, FrameConnection& to) {
    from.set_events({.on_frame =
                         [this, &to](const std::string& frame) {
                           passed_.fetch_add(1);
                           to.send(frame);
                         },
                     .on_close = [&to](const Error&) { to.finish(); }});
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::start();
  TlsIdentity tls_ = TlsIdentity::make(KeyPair::generate().value()).value();
  std::unique_ptr<FrameServer> server_;
  FrameCall call_;
  FrameConnection near_, far_;
  std::atomic<int> passed_{0};
};

}  // namespace

TEST_CASE("joining: a machine in the middle gets no key, though the right PIN was typed") {
  Joining joining;
  Middle middle(joining.host.address());
  auto request = joining.request();
  request.address = middle.address();
  request.ask_pin = [&](const JoinRequest::Offer&) { return joining.shown_pin(); };
  const auto key = joining.join(request);
  CHECK(!key.ok());
  CHECK(middle.passed() >= 4);  // it did forward: request, offer, shares
  CHECK(joining.host.peers->report().pins.empty());
}

TEST_CASE("joining: a machine in the middle learns nothing from a token") {
  Joining joining;
  Middle middle(joining.host.address());
  auto request = joining.request();
  request.address = middle.address();
  request.token = make_join_token(joining.key, seconds_from_now(60)).value();
  CHECK(!joining.join(request).ok());
  CHECK(middle.passed() >= 1);
}

TEST_CASE("joining: a false node that does not know the PIN is not believed") {
  const TemporaryFolder folder;
  const auto loop = EventLoop::start();
  const TlsIdentity tls = TlsIdentity::make(KeyPair::generate().value()).value();
  std::unique_ptr<FrameServer> server;
  std::vector<FrameConnection> open;
  const ClusterKey false_key = new_cluster();
  loop->must_run([&] {
    server = std::move(
        FrameServer::listen(*loop, tls, {.host = "127.0.0.1"}, [&](FrameConnection connection) {
          open.push_back(connection);
          auto frames = std::make_shared<int>(0);
          connection.set_events({.on_frame = [connection, frames, &tls,
                                              &false_key](const std::string&) mutable {
            ++*frames;
            const PublicKey joiner = connection.peer_key();
            auto guess = std::move(start_pin_proof(Spake2::Side::kB, joiner, tls.public_key(),
                                                   connection.session_secret(), "00000000")
                                       .value());
            if (*frames == 1) {
              connection.send(encode_join_frame({.state = "pin", .name = "x"}));
            } else if (*frames == 2) {
              connection.send(encode_join_frame({.share = std::string(text_of(guess.share()))}));
            } else {
              connection.send(encode_join_frame(
                  {.confirmation = std::string(32, 'x'), .key = false_key.text()}));
            }
          }});
        }).value());
  });
  JoinRequest request{.address = {"127.0.0.1", server->port()}, .version = "0.1.0"};
  request.ask_pin = [](const JoinRequest::Offer&) { return "12345678"; };
  const auto key = join_cluster(*loop, open_identity(folder, "joiner"), request);
  REQUIRE(!key.ok());
  CHECK(key.error().message.find("does not know the PIN") != std::string::npos);
  loop->must_run([&] {
    for (FrameConnection& connection : open) connection.close();
    open.clear();
    server.reset();
  });
}

TEST_CASE("joining: text that is not a PIN, a missing node, and cancelling are errors") {
  Joining joining;
  auto request = joining.request();
  request.ask_pin = [](const JoinRequest::Offer&) { return "12 34"; };
  CHECK(joining.join(request).error().code == ErrorCode::kInvalidArgument);
  request.address.port = 1;
  CHECK(joining.join(request).error().code == ErrorCode::kPeerLost);
  request = joining.request();
  const std::atomic<bool> cancelled{true};
  request.cancelled = &cancelled;
  request.ask_pin = [](const JoinRequest::Offer&) { return "12345678"; };
  CHECK(joining.join(request).error().code == ErrorCode::kCancelled);
}
