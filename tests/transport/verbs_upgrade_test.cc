// How two ranks agree on a link over RDMA, and the fallback when they cannot.
#include "transport/verbs/verbs_upgrade.h"

#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "transport/fake_devices.h"
#include "transport/form/local_links.h"
#include "transport/tcp/tcp_link.h"
#include "transport/verbs/verbs_link.h"
#include "transport/verbs/verbs_note.h"

using namespace lockstep;

namespace {

bool is_verbs(const Result<VerbsUpgrade>& upgrade, size_t peer) {
  return dynamic_cast<const VerbsLink*>(upgrade.value().links[peer].get()) != nullptr;
}

// Both fall back to TCP, report it, and their links work.
void check_fallback(UpgradePair& pair, const std::string& low_refusal) {
  auto& [low, high] = pair;
  REQUIRE_MESSAGE(low.ok(), low.error().message);
  REQUIRE_MESSAGE(high.ok(), high.error().message);
  CHECK(low.value().refusal == low_refusal);
  REQUIRE(low.value().uses.size() == 1);
  CHECK(low.value().uses[0].path == LinkPath::kTcp);
  CHECK(low.value().uses[0].reason == low_refusal);
  CHECK(high.value().refusal != "");
  Link &left = *low.value().links[1], &right = *high.value().links[0];
  CHECK(dynamic_cast<TcpLink*>(&left) != nullptr);
  CHECK(dynamic_cast<TcpLink*>(&right) != nullptr);
  REQUIRE(try_send(left, 100'000, 3));
  CHECK(is_frame(await_frame(right), 100'000, 3));
}

}  // namespace

TEST_CASE("two ranks with RDMA get the best kind of link that both support") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices(), unreliable = open_fake_devices(true);
  for (const bool is_mixed : {false, true}) {
    CAPTURE(is_mixed);
    auto [low, high] =
        upgrade_pair({.epoch = 3, .devices = devices.get()},
                     {.epoch = 3, .devices = is_mixed ? unreliable.get() : devices.get()});
    REQUIRE(low.ok());
    REQUIRE(high.ok());
    REQUIRE(is_verbs(low, 1));
    REQUIRE(is_verbs(high, 0));
    CHECK(dynamic_cast<VerbsLink&>(*low.value().links[1]).is_reliable() == !is_mixed);
    CHECK(low.value().links[1]->frame_bytes_max() == high.value().links[0]->frame_bytes_max());
    CHECK(low.value().refusal == "");
    REQUIRE(low.value().uses.size() == 1);
    const LinkUse& use = low.value().uses[0];
    CHECK(use.peer == 1);
    CHECK(use.path == (is_mixed ? LinkPath::kVerbsUc : LinkPath::kVerbsRc));
    CHECK(use.rails == 1);
    CHECK(use.tcp_rails == 0);
    CHECK(use.reason == "");
  }
}

TEST_CASE("a peer has no remote write access, unless the driver requires it") {
  constexpr uint32_t kRemote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  for (const FakeMode mode : {FakeMode::kReliable, FakeMode::kApple}) {
    FakeScope fake(mode);
    fake->access = 0;
    const auto devices = open_fake_devices();
    const auto pair = upgrade_pair({.epoch = 3, .devices = devices.get()},
                                   {.epoch = 3, .devices = devices.get()});
    REQUIRE(pair.first.ok());
    CHECK(is_verbs(pair.first, 1));
    CHECK((fake->access & IBV_ACCESS_LOCAL_WRITE) != 0);
    CHECK((fake->access & kRemote) == (mode == FakeMode::kApple ? kRemote : 0u));
  }
}

TEST_CASE("one of two rails may stay on TCP, and the link's report says so") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  SocketPair fit, unfit("127.0.0.2", "127.0.0.2");
  const auto upgrade = [&](size_t end) {
    PeerConnections connections(2);
    connections[1 - end].push_back({std::move(fit.ends[end]), std::nullopt});
    connections[1 - end].push_back({std::move(unfit.ends[end]), std::nullopt});
    return upgrade_to_verbs(std::move(connections), {.link = {.kind = LinkKind::kVerbs, .rails = 2},
                                                     .devices = devices.get()});
  };
  Result<VerbsUpgrade> low = VerbsUpgrade{};
  std::thread thread([&] { low = upgrade(0); });
  const Result<VerbsUpgrade> high = upgrade(1);
  thread.join();
  REQUIRE(low.ok());
  REQUIRE(high.ok());
  REQUIRE(low.value().uses.size() == 1);
  const LinkUse& use = low.value().uses[0];
  CHECK(use.path == LinkPath::kVerbsRc);
  CHECK(use.rails == 2);
  CHECK(use.tcp_rails == 1);
  CHECK(use.reason == "no RDMA device has the address of the connection");
}

TEST_CASE("ranks at the addresses of two devices use both") {
  FakeScope fake(FakeMode::kReliable);
  fake->device_count = 2;
  const auto devices = open_fake_devices();
  const VerbsUpgradeOptions options{.devices = devices.get()};
  auto [low, high] = upgrade_pair(options, options, SocketPair("127.0.0.1", "127.0.0.2"));
  REQUIRE(low.ok());
  REQUIRE(high.ok());
  CHECK(is_verbs(low, 1));
  CHECK(is_verbs(high, 0));
  CHECK(devices->counts().domains == 2);
  CHECK(devices->addresses().size() == 2);
}

TEST_CASE("frames are as long as both sides allow") {
  const std::pair<uint32_t, size_t> cases[] = {
      {65'536, 65'536}, {65'535, 16'384}, {16'384, 16'384}, {16'383, 4'096}, {4'096, 4'096}};
  for (const auto& [longest, frame_bytes] : cases) {
    FakeScope fake(FakeMode::kApple);
    fake->message_bytes_max = longest;
    const auto devices = open_fake_devices();
    LinkPair links(*devices, 65'536);
    CHECK(links.left->frame_bytes_max() == frame_bytes - kFrameHeaderBytes);
    CHECK(links.right->frame_bytes_max() == frame_bytes - kFrameHeaderBytes);
    REQUIRE(try_send(*links.left, links.left->frame_bytes_max(), 5));
    CHECK(is_frame(await_frame(*links.right), links.left->frame_bytes_max(), 5));
    CHECK(devices->counts().queue_pairs == 2);  // each attempt used the same
  }
}

TEST_CASE("a pair whose frames never arrive stays on TCP") {
  FakeScope fake(FakeMode::kLossy);
  fake->message_bytes_max = 1000;
  const auto devices = open_fake_devices();
  const VerbsUpgradeOptions options{.devices = devices.get()};
  UpgradePair pair = upgrade_pair(options, options);
  check_fallback(pair,
                 "rank 1: no frame of 4032 bytes arrived over RDMA within 1000 ms: does the "
                 "cable lead there, and is RDMA switched on at both ends?");
}

TEST_CASE("a rank without RDMA keeps both on TCP, and each says why") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  const VerbsUpgradeOptions fit{.devices = devices.get()};
  SUBCASE("its address belongs to no device") {
    UpgradePair pair = upgrade_pair(fit, fit, SocketPair("127.0.0.1", "127.0.0.2"));
    check_fallback(pair, "rank 1: no RDMA device has the address of the connection");
    CHECK(pair.second.value().refusal == "no RDMA device has the address of the connection");
  }
  SUBCASE("its port is down") {
    fake->is_port_down = 1;
    UpgradePair pair = upgrade_pair(fit, fit);
    check_fallback(pair,
                   "the RDMA port of this address is not active: is the cable in, and RDMA "
                   "switched on at both ends?");
  }
  CHECK(fake->queue_pairs <= 1);
}

TEST_CASE("a missing or invalid library is one sentence") {
  const auto none = VerbsDevices::open({.library = "/nowhere/librdma.so"});
  REQUIRE(!none.ok());
  CHECK(none.error().code == ErrorCode::kUnsupported);
  CHECK(none.error().message.find("the RDMA library /nowhere/librdma.so cannot be loaded") == 0);
  CHECK(none.error().message.find('\n') == std::string::npos);
#ifdef __linux__
  const auto other = VerbsDevices::open({.library = "libm.so.6"});
  REQUIRE(!other.ok());
  CHECK(other.error().message == "the RDMA library libm.so.6 has no ibv_get_device_list");
#endif
}

TEST_CASE("each failing call is a sentence and falls back to TCP, and nothing leaks") {
  const std::pair<FakeCall, const char*> cases[] = {
      {FakeCall::kQueryPort, "the RDMA device fake0: asking for its port failed: Invalid argument"},
      {FakeCall::kAllocPd,
       "the RDMA device fake0: getting a protection domain failed: Cannot allocate memory"},
      {FakeCall::kRegMr,
       "the RDMA device fake0: registering 2112 KiB of memory failed (is the limit of locked "
       "memory, ulimit -l, smaller?): Cannot allocate memory"},
      {FakeCall::kCreateCq,
       "the RDMA device fake0: getting a completion queue failed: Cannot allocate memory"},
      {FakeCall::kCreateQp,
       "the RDMA device fake0: getting a queue pair failed: Cannot allocate memory"},
      {FakeCall::kToInit, "the queue pair did not become INIT: Input/output error"},
      {FakeCall::kToRtr, "the queue pair did not become RTR: Input/output error"},
      {FakeCall::kToRts, "the queue pair did not become RTS: Input/output error"},
      {FakeCall::kPostRecv, "room for incoming frames was refused: Cannot allocate memory"},
      {FakeCall::kPostSend, "rank 1: sending failed: Cannot allocate memory"},
      {FakeCall::kPollCq, "rank 1: its completions cannot be read"},
      {FakeCall::kSent, "rank 1: no answer to repeated packets"},
      {FakeCall::kReceived, "rank 1: the connection had ended"},
  };
  for (const auto& [call, message] : cases) {
    CAPTURE(message);
    FakeScope fake(FakeMode::kReliable);
    auto devices = open_fake_devices(), others = open_fake_devices();
    fake->succeeding_calls = 0;
    fake->failing_call = static_cast<int>(call);
    UpgradePair pair = upgrade_pair({.devices = devices.get()}, {.devices = others.get()});
    check_fallback(pair, message);
    fake->failing_call = 0;
    {  // the failure does not affect the next group
      LinkPair links(*devices);
      CHECK(devices->counts().queue_pairs <= 3);
      CHECK(devices->counts().regions <= 2);
    }
    devices.reset();
    others.reset();
    for (const int left : {fake->contexts.load(), fake->domains.load(), fake->regions.load(),
                           fake->completion_queues.load(), fake->queue_pairs.load()}) {
      CHECK(left == 0);
    }
  }
}

TEST_CASE("devices that cannot be opened are a sentence") {
  const std::pair<FakeCall, const char*> cases[] = {
      {FakeCall::kGetDeviceList, "this machine has no RDMA device (Function not implemented)"},
      {FakeCall::kOpenDevice, "the RDMA device fake0: opening it failed: Permission denied"},
      {FakeCall::kQueryDevice,
       "the RDMA device fake0: asking for its limits failed: Input/output error"},
  };
  for (const auto& [call, message] : cases) {
    FakeScope fake(FakeMode::kReliable);
    fake->succeeding_calls = 0;
    fake->failing_call = static_cast<int>(call);
    const auto devices = VerbsDevices::open({.library = kFakeLibrary});
    REQUIRE(!devices.ok());
    CHECK(devices.error().message == message);
    CHECK(fake->contexts == 0);
  }
  FakeScope fake(FakeMode::kReliable);
  fake->device_count = 0;
  CHECK(VerbsDevices::open({.library = kFakeLibrary}).error().message ==
        "this machine has no RDMA device");
}

TEST_CASE("a hundred consecutive groups use the same device objects") {
  for (const FakeMode mode : {FakeMode::kReliable, FakeMode::kApple}) {
    FakeScope fake(mode);
    const auto devices = open_fake_devices();
    for (uint32_t epoch = 1; epoch <= 100; ++epoch) {
      LinkPair links(*devices, 0, epoch);
      REQUIRE(try_send(*links.left, 1000, static_cast<int>(epoch)));
      REQUIRE(is_frame(await_frame(*links.right), 1000, static_cast<int>(epoch)));
    }
    CHECK(devices->counts().contexts == 1);
    CHECK(devices->counts().domains == 1);
    CHECK(devices->counts().queue_pairs == 2);
    CHECK(fake->queue_pairs == 2);
    // Both ends are in this process and request one after the other.
    CHECK(devices->counts().regions <= 2);
    CHECK(fake->regions == devices->counts().regions);
    CHECK(fake->completion_queues == 2);
  }
}

TEST_CASE("a queue pair that cannot be reset is replaced") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  { LinkPair links(*devices); }
  fake->succeeding_calls = 0;
  fake->failing_call = static_cast<int>(FakeCall::kToReset);
  { LinkPair links(*devices); }
  fake->failing_call = 0;
  CHECK(fake->queue_pairs == 0);
  { LinkPair links(*devices); }
  CHECK(fake->queue_pairs == 2);
  CHECK(devices->counts().regions <= 2);
}

TEST_CASE("no more queue pairs are requested than an Apple device has") {
  FakeScope fake(FakeMode::kApple);
  const auto devices = open_fake_devices();
  std::vector<LinkPair> links;
  for (int i = 0; i < 5; ++i) links.emplace_back(*devices);
  CHECK(fake->queue_pairs == kFakeAppleQueuePairs);
  const VerbsUpgradeOptions options{.devices = devices.get()};
  UpgradePair pair = upgrade_pair(options, options);
  check_fallback(pair, "the RDMA device fake0 has 10 queue pairs in use already");
}

TEST_CASE("each rail has its own queue pair") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  PeerConnections low(2), high(2);
  for (int rail = 0; rail < 3; ++rail) {
    SocketPair sockets;
    low[1].push_back({std::move(sockets.ends[0]), std::nullopt});
    high[0].push_back({std::move(sockets.ends[1]), std::nullopt});
  }
  const VerbsUpgradeOptions options{.link = {.kind = LinkKind::kVerbs, .rails = 3},
                                    .devices = devices.get()};
  Result<VerbsUpgrade> left = VerbsUpgrade{};
  std::thread thread([&] { left = upgrade_to_verbs(std::move(low), options); });
  Result<VerbsUpgrade> right = upgrade_to_verbs(std::move(high), options);
  thread.join();
  REQUIRE(left.ok());
  REQUIRE(right.ok());
  CHECK(fake->queue_pairs == 6);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(try_send(*left.value().links[1], 500, i));
    REQUIRE(is_frame(await_frame(*right.value().links[0]), 500, i));
    right.value().links[0]->release();
  }
}

TEST_CASE("all ranks of a rendezvous are connected over RDMA") {
  FakeScope fake(FakeMode::kReliable);
  constexpr size_t kRanks = 4;
  const auto devices = open_fake_devices();
  std::vector<TcpListener> listeners;
  std::vector<TcpAddress> addresses;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    listeners.push_back(std::move(TcpListener::open("127.0.0.1").value()));
    addresses.push_back(listeners.back().address());
  }
  std::vector<Result<VerbsUpgrade>> upgrades;
  for (size_t rank = 0; rank < kRanks; ++rank) upgrades.emplace_back(VerbsUpgrade{});
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      RendezvousOptions options;
      options.rank = static_cast<int>(rank);
      options.epoch = 9;
      options.link.kind = LinkKind::kVerbs;
      auto connections = connect_sockets(listeners[rank], addresses, options);
      if (!connections.ok()) {
        upgrades[rank] = connections.error();
        return;
      }
      upgrades[rank] =
          upgrade_to_verbs(std::move(connections.value()), {.epoch = 9, .devices = devices.get()});
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < kRanks; ++i) {
    REQUIRE_MESSAGE(upgrades[i].ok(), upgrades[i].error().message);
    CHECK(upgrades[i].value().refusal == "");
    CHECK(upgrades[i].value().links[i] == nullptr);
    for (size_t j = 0; j < kRanks; ++j) {
      if (i == j) continue;
      REQUIRE(try_send(*upgrades[i].value().links[j], 700, static_cast<int>(i)));
      CHECK(is_frame(await_frame(*upgrades[j].value().links[i]), 700, static_cast<int>(i)));
      upgrades[j].value().links[i]->release();
    }
  }
  CHECK(fake->queue_pairs == kRanks * (kRanks - 1));
}

TEST_CASE("the environment selects the library of a process, and its ranks can be threads") {
  FakeScope fake(FakeMode::kReliable);
  const LinkOptions options{.kind = LinkKind::kVerbs};
  ::setenv("LOCKSTEP_VERBS_LIBRARY", "/nowhere/librdma.so", 1);
  CHECK(verbs_availability().error().code == ErrorCode::kUnsupported);
  CHECK(verbs_addresses().empty());
  CHECK(open_local_links(options, 2).error().message.find("/nowhere/librdma.so") !=
        std::string::npos);
  ::setenv("LOCKSTEP_VERBS_LIBRARY", kFakeLibrary.c_str(), 1);
  CHECK(verbs_availability().ok());
  CHECK(verbs_addresses() == std::vector<std::string>{"127.0.0.1"});
  for (int round = 0; round < 3; ++round) {
    auto opened = open_local_links(options, 4);
    REQUIRE_MESSAGE(opened.ok(), opened.error().message);
    LocalLinks& links = opened.value();
    REQUIRE(try_send(*links[3][1], 4000, round));
    CHECK(is_frame(await_frame(*links[1][3]), 4000, round));
  }
  CHECK(fake->queue_pairs == 12);
  fake->is_port_down = 1;
  CHECK(verbs_availability().error().message ==
        "no RDMA device has an active port with an IPv4 address");
  ::unsetenv("LOCKSTEP_VERBS_LIBRARY");
}

TEST_CASE("silence, garbage or a close from the peer ends the upgrade with an error") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  VerbsUpgradeOptions options{.timeout = std::chrono::milliseconds{60}, .devices = devices.get()};
  {
    SocketPair sockets;
    const auto silent = upgrade_end(std::move(sockets.ends[1]), 1, options);
    REQUIRE(!silent.ok());
    CHECK(silent.error().code == ErrorCode::kTimeout);
    CHECK(silent.error().message == "rank 0: no answer while links were set up");
  }
  options.timeout = kVerbsTimeout;
  {
    SocketPair sockets;
    sockets.ends[0].reset();
    const auto gone = upgrade_end(std::move(sockets.ends[1]), 1, options);
    REQUIRE(!gone.ok());
    CHECK(gone.error().code == ErrorCode::kPeerLost);
  }
  for (const size_t wrong :
       {offsetof(VerbsNote, magic), offsetof(VerbsNote, version), offsetof(VerbsNote, phase)}) {
    SocketPair sockets;
    VerbsNote note;
    reinterpret_cast<std::byte*>(&note)[wrong] ^= std::byte{1};
    REQUIRE(::send(sockets.ends[0].get(), &note, sizeof(note), 0) == sizeof(note));
    const auto nonsense = upgrade_end(std::move(sockets.ends[1]), 1, options);
    REQUIRE(!nonsense.ok());
    CHECK(nonsense.error().code == ErrorCode::kCorrupt);
  }
  {
    SocketPair sockets;
    VerbsNote note;  // its reason is not terminated, and not printable
    std::memset(note.reason, '\x1b', sizeof(note.reason));
    REQUIRE(::send(sockets.ends[0].get(), &note, sizeof(note), 0) == sizeof(note));
    const auto refused = upgrade_end(std::move(sockets.ends[1]), 1, options);
    REQUIRE(refused.ok());
    CHECK(refused.value().refusal.find("rank 0: ???") == 0);
    CHECK(refused.value().refusal.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("an upgrade can be cancelled") {
  FakeScope fake(FakeMode::kReliable);
  const auto devices = open_fake_devices();
  const std::atomic<bool> cancelled{true};
  SocketPair sockets;
  const auto upgrade = upgrade_end(std::move(sockets.ends[1]), 1,
                                   {.cancelled = &cancelled, .devices = devices.get()});
  REQUIRE(!upgrade.ok());
  CHECK(upgrade.error().code == ErrorCode::kCancelled);
}

#endif
