// A peer over RDMA that sends garbage or late frames, or dies.
#include "transport/verbs/verbs_link.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <memory>

#include "transport/fake_devices.h"

using namespace lockstep;

namespace {

constexpr uint32_t kEpoch = 7;
constexpr uint32_t kConnection = 70;
constexpr size_t kFrameBytes = 4096;

// The link of rank 1 to rank 0, and rank 0's end as a bare queue pair.
struct RawQueue {
  VerbsDevices& devices;
  VerbsQueue queue;
  std::unique_ptr<VerbsLink> link;

  explicit RawQueue(VerbsDevices& devices_used) : devices(devices_used), queue(take(devices_used)) {
    VerbsQueue other(take(devices));
    const IpBytes address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    const VerbsPort port = devices.find(address).value();
    const VerbsQueue::Endpoint low{address, 0, queue.number(), 1};
    const VerbsQueue::Endpoint high{address, 0, other.number(), 2};
    REQUIRE(queue.connect({port, port.mtu, kFrameBytes, low, high}).ok());
    REQUIRE(other.connect({port, port.mtu, kFrameBytes, high, low}).ok());
    link = std::make_unique<VerbsLink>(std::move(other),
                                       VerbsLink::Options{.peer = 0,
                                                          .epoch = kEpoch,
                                                          .own_connection = kConnection,
                                                          .peer_connection = kConnection + 1});
  }
  static VerbsLease take(VerbsDevices& devices) {
    return std::move(devices.take(0, IBV_QPT_RC).value());
  }
  void send(const VerbsHeader& header, size_t bytes) {
    std::memcpy(queue.outgoing(0), &header, sizeof(header));
    REQUIRE(queue.post_send(0, bytes) == 0);
  }
};

VerbsHeader right_header(uint64_t sequence = 0) {
  VerbsHeader header;
  header.frame = {kEpoch, 100, sequence};
  header.connection = kConnection;
  return header;
}

}  // namespace

TEST_CASE("a header over RDMA that is wrong in any part breaks the link") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  struct Case {
    const char* part;
    VerbsHeader header = right_header();
    size_t bytes = kFrameHeaderBytes + 100;
  };
  Case cases[] = {{"magic"},
                  {"epoch"},
                  {"sequence"},
                  {"length beyond the frame"},
                  {"length beyond what came"},
                  {"received"},
                  {"no header"}};
  cases[0].header.magic ^= 1;
  cases[1].header.frame.epoch = kEpoch - 1;
  cases[2].header.frame.sequence = 1;
  cases[3].header.frame.length = kFrameBytes;
  cases[4].header.frame.length = 101;
  cases[5].header.received = 1;  // it was sent nothing
  cases[6].bytes = 63;
  for (const Case& bad : cases) {
    CAPTURE(bad.part);
    RawQueue peer(*devices);
    peer.send(bad.header, bad.bytes);
    CHECK(await_loss(*peer.link).code == ErrorCode::kCorrupt);
    CHECK(peer.link->health().error().message.find("rank 0: ") == 0);
    CHECK(peer.link->peek().empty());
  }
}

TEST_CASE("frames of a connection that ended are dropped and counted") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  RawQueue peer(*devices);
  const uint64_t before = devices->late_frame_count();
  // More than there are RECVs.
  for (int i = 0; i < 3 * VerbsDevices::kDepth; ++i) {
    VerbsHeader late = right_header(static_cast<uint64_t>(i));
    late.connection = kConnection - 1;
    late.frame.epoch = kEpoch - 1;
    peer.send(late, kFrameBytes);
    CHECK(peer.link->peek().empty());
  }
  CHECK(devices->late_frame_count() == before + 3 * VerbsDevices::kDepth);
  peer.send(right_header(), kFrameHeaderBytes + 100);
  CHECK(await_frame(*peer.link).size() == 100);
  CHECK(peer.link->health().ok());
}

TEST_CASE("a frame that was held back until its queue pair served another epoch is late") {
  FakeScope fake(FakeMode::kApple);
  const auto devices = open_fake_devices();
  const auto inject = reinterpret_cast<FakeVerbsInject>(
      ::dlsym(::dlopen(kFakeLibrary.c_str(), RTLD_NOW), "fake_verbs_inject"));
  LinkPair links(*devices, 4096, 2);
  std::vector<std::byte> held(4096);
  VerbsHeader header = right_header();
  header.frame.epoch = 1;
  std::memcpy(held.data(), &header, sizeof(header));
  int hit_count = 0;
  for (uint32_t number = 0; number < 0x1000; ++number) {
    hit_count += inject(number, held.data(), held.size()) ? 1 : 0;
  }
  REQUIRE(hit_count >= 2);
  CHECK(links.left->peek().empty());
  CHECK(links.right->peek().empty());
  CHECK(devices->late_frame_count() == 2);
  REQUIRE(try_send(*links.left, 900, 1));
  CHECK(is_frame(await_frame(*links.right), 900, 1));
}

TEST_CASE("a peer process that is killed is lost within two seconds, without a notice from RDMA") {
  for (const FakeMode mode : {FakeMode::kReliable, FakeMode::kApple}) {
    FakeScope fake(mode);
    SocketPair sockets;
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {  // sends one frame, then is silent
      sockets.ends[1].reset();
      const auto devices = open_fake_devices();
      auto upgrade = upgrade_end(std::move(sockets.ends[0]), 0, {.devices = devices.get()});
      if (!upgrade.ok() || !upgrade.value().refusal.empty()) ::_exit(1);
      try_send(*upgrade.value().links[1], 100, 1);
      if (::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    sockets.ends[0].reset();
    const auto devices = open_fake_devices();
    auto upgrade = upgrade_end(std::move(sockets.ends[1]), 1, {.devices = devices.get()});
    REQUIRE(upgrade.ok());
    REQUIRE(upgrade.value().refusal == "");
    Link& link = *upgrade.value().links[0];
    CHECK(is_frame(await_frame(link), 100, 1));
    link.release();
    char byte;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK(link.health().ok());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Error error = await_loss(link, std::chrono::milliseconds{2'000});
    CHECK(error.code == ErrorCode::kPeerLost);
    CHECK(error.message == "rank 0: it closed the link");
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

#endif
