// The traps of RDMA on Macs, as published, played by the fake library: each is survived, or is one
// sentence before the deadline. docs/internals/links.md has the sources.
#include "transport/verbs/verbs_link.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/verbs_ranks.h"
#include "transport/fake_devices.h"
#include "transport/tcp/tcp_link.h"

using namespace lockstep;

namespace {

constexpr size_t kLongest = 64 * 1024;
constexpr int kRails = 8;
constexpr const char* kNothingArrives =
    "no frame of 4032 bytes arrived over RDMA within 1000 ms: does the cable lead there, and is "
    "RDMA switched on at both ends?";

// Two Macs, each with its own devices. The number of the port of machine i is first_port + i.
struct Macs {
  FakeScope fake{FakeMode::kApple};
  uint32_t first_port = fake->ports + 1;
  std::vector<VerbsRank> machines;

  explicit Macs(bool is_fenced = true) {
    for (int i = 0; i < 2; ++i) {
      machines.push_back({is_fenced ? open_fake_devices() : open_unfenced_devices(), "127.0.0.1"});
    }
  }
  LocalLinks open_links(int rails = 1, size_t frame_bytes = 0) {
    return open_verbs_links(machines, {.kind = LinkKind::kVerbs, .rails = rails}, 1, frame_bytes);
  }
  UpgradePair upgrade() {
    return upgrade_pair({.devices = machines[0].devices.get()},
                        {.devices = machines[1].devices.get()});
  }
};

// Sends frames until there is no room; how many.
int fill(Link& link) {
  int sent = 0;
  while (try_send(link, link.frame_bytes_max(), sent)) ++sent;
  return sent;
}

// Reads the frames that fill() sent; how many are right before the link is lost or none is left.
int read_filled(Link& link, int frames) {
  int read = 0;
  for (; read < frames; ++read) {
    const auto frame = await_frame(link);
    if (frame.empty()) return read;
    CHECK(is_frame(frame, link.frame_bytes_max(), read));
    link.release();
  }
  return read;
}

// The error of `link`, while the other end does what an idle rank does.
Error loss_beside(Link& link, Link& other) {
  Wait wait(kVerbsTimeout);
  while (link.health().ok()) {
    if (!link.peek().empty()) link.release();
    static_cast<void>(other.peek());
    if (Status waited = wait.pause("loss"); !waited.ok()) return waited.error();
  }
  return link.health().error();
}

void check_stays_on_tcp(UpgradePair pair, const std::string& low, const std::string& high) {
  REQUIRE_MESSAGE(pair.first.ok(), pair.first.error().message);
  REQUIRE_MESSAGE(pair.second.ok(), pair.second.error().message);
  CHECK(pair.first.value().refusal == low);
  CHECK(pair.second.value().refusal == high);
  Link &left = *pair.first.value().links[1], &right = *pair.second.value().links[0];
  CHECK(dynamic_cast<TcpLink*>(&left) != nullptr);
  REQUIRE(try_send(left, 1000, 3));
  CHECK(is_frame(await_frame(right), 1000, 3));
}

}  // namespace

TEST_CASE("only a Thunderbolt device limits what is unacknowledged") {
  {
    FakeScope fake(FakeMode::kReliable);
    for (const bool unreliable : {false, true}) {
      const auto devices = open_fake_devices(unreliable);
      for (const size_t bytes : {4096, 16'384, 65'536}) {
        CHECK(devices->window(0, bytes) == VerbsLimits::kDepth);
      }
    }
  }
  Macs macs;
  const VerbsDevices& devices = *macs.machines[0].devices;
  for (const size_t bytes : {4096, 16'384, 65'536}) {
    const auto unacknowledged = static_cast<uint64_t>(devices.window(0, bytes)) * bytes;
    CHECK(unacknowledged * VerbsLimits::kUnreliableQueuePairsMax <=
          VerbsLimits::kThunderboltUnacknowledged);
  }
  CHECK(devices.window(0, 4096) == VerbsLimits::kDepth);
  CHECK(devices.window(0, 16'384) == 12);
  CHECK(devices.window(0, 65'536) == VerbsLimits::kWindowMin);
}

TEST_CASE("a sender waits for acknowledgements before a Mac's port overflows") {
  Macs macs;
  LocalLinks links = macs.open_links(kRails, kLongest);
  macs.fake->held_port = macs.first_port + 1;  // the receiver's ring is not emptied yet
  const uint64_t before = macs.fake->messages;
  const int sent = fill(*links[0][1]);
  CHECK(sent >= kRails);
  CHECK((macs.fake->messages - before) * kLongest <= VerbsLimits::kThunderboltUnacknowledged);
  macs.fake->held_port = 0;
  CHECK(read_filled(*links[1][0], sent) == sent);
  // Much more than the ring holds, in both directions.
  constexpr int kFrames = 1000;
  int left_frames = 0;
  std::thread thread([&] { left_frames = exchange_frames(*links[0][1], kFrames); });
  CHECK(exchange_frames(*links[1][0], kFrames) == kFrames);
  thread.join();
  CHECK(left_frames == kFrames);
  CHECK(macs.fake->overflows == 0);
  CHECK(macs.fake->early_messages == 0);
}

TEST_CASE("without the fence the ring overflows silently, and the receiver says that frames lack") {
  Macs macs(false);
  LocalLinks links = macs.open_links(kRails, kLongest);
  macs.fake->held_port = macs.first_port + 1;
  const int sent = fill(*links[0][1]);
  CHECK(sent * kLongest > kFakeApplePortBytes);
  CHECK(macs.fake->overflows == static_cast<uint64_t>(sent) - kFakeApplePortBytes / kLongest);
  CHECK(links[0][1]->health().ok());  // the sender is told nothing
  macs.fake->held_port = 0;
  const int arrived = static_cast<int>(kFakeApplePortBytes / kLongest);
  CHECK(read_filled(*links[1][0], arrived) == arrived);
  SUBCASE("the lost frames are the last") {
    const Error error = loss_beside(*links[1][0], *links[0][1]);
    CHECK(error.code == ErrorCode::kPeerLost);
    CHECK(error.message.find("rank 0: ") == 0);
    CHECK(error.message.find("frames that it sent over RDMA have not arrived") !=
          std::string::npos);
  }
  SUBCASE("more frames follow") {
    Wait wait(kVerbsTimeout);
    while (!try_send(*links[0][1], 100, 1)) {
      static_cast<void>(links[1][0]->peek());
      REQUIRE(wait.pause("room").ok());
    }
    const Error error = loss_beside(*links[1][0], *links[0][1]);
    CHECK(error.code == ErrorCode::kCorrupt);
    CHECK(error.message.find("rank 0: a frame has sequence number") == 0);
  }
}

TEST_CASE("every window brings all frames, also if the ends have different ones") {
  FakeScope fake(FakeMode::kApple);
  constexpr size_t kFrameBytes = 4096;
  const auto with_window = [&](int frames) {
    VerbsDevices::Options options{.library = kFakeLibrary};
    options.unacknowledged_bytes_max =
        kFrameBytes * VerbsLimits::kUnreliableQueuePairsMax * static_cast<uint64_t>(frames);
    return std::move(VerbsDevices::open(std::move(options)).value());
  };
  for (int window = 1; window <= VerbsLimits::kDepth; ++window) {
    CAPTURE(window);
    const auto left = with_window(window), right = with_window(VerbsLimits::kDepth + 1 - window);
    REQUIRE(left->window(0, kFrameBytes) == std::max(window, VerbsLimits::kWindowMin));
    auto [low, high] = upgrade_pair({.devices = left.get(), .frame_bytes = kFrameBytes},
                                    {.devices = right.get(), .frame_bytes = kFrameBytes});
    REQUIRE(low.ok());
    REQUIRE(high.ok());
    constexpr int kFrames = 300;
    int left_frames = 0;
    std::thread thread([&] { left_frames = exchange_frames(*low.value().links[1], kFrames); });
    CHECK(exchange_frames(*high.value().links[0], kFrames) == kFrames);
    thread.join();
    CHECK(left_frames == kFrames);
  }
  CHECK(fake->early_messages == 0);
  CHECK(fake->unequal_buffers == 0);
}

TEST_CASE("idle links over RDMA do not answer each other's credits for ever") {
  Macs macs;
  LocalLinks links = macs.open_links(1, kLongest);
  for (int round = 0; round < 20; ++round) {
    REQUIRE(try_send(*links[0][1], 100, round));
    REQUIRE(is_frame(await_frame(*links[1][0]), 100, round));
    links[1][0]->release();
  }
  uint64_t before;
  int quiet = 0;
  for (int i = 0; i < 1000 && quiet < 10; ++i) {
    before = macs.fake->messages;
    static_cast<void>(links[0][1]->peek());
    static_cast<void>(links[1][0]->peek());
    quiet = macs.fake->messages == before ? quiet + 1 : 0;
  }
  CHECK(quiet == 10);
}

TEST_CASE("SENDs and RECVs on a Mac are whole buffers of one size, and others are an error") {
  Macs macs;
  {
    LocalLinks links = macs.open_links();
    for (size_t bytes = 1; bytes < links[0][1]->frame_bytes_max(); bytes += 1237) {
      REQUIRE(try_send(*links[0][1], bytes, 5));
      REQUIRE(is_frame(await_frame(*links[1][0]), bytes, 5));
      links[1][0]->release();
    }
  }
  CHECK(macs.fake->unequal_buffers == 0);

  VerbsDevices& devices = *macs.machines[0].devices;
  VerbsQueue longer(std::move(devices.take(0, IBV_QPT_UC).value()));
  VerbsQueue shorter(std::move(devices.take(0, IBV_QPT_UC).value()));
  const IpBytes address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  const VerbsPort port = devices.find(address).value();
  const VerbsQueue::Endpoint low{address, 0, longer.number(), 1};
  const VerbsQueue::Endpoint high{address, 0, shorter.number(), 2};
  REQUIRE(longer.connect({port, port.mtu, 16'384, low, high}).ok());
  REQUIRE(shorter.connect({port, port.mtu, 4096, high, low}).ok());
  VerbsLink link(std::move(longer), {.peer = 1});
  REQUIRE(shorter.post_send(0, 4096) == 0);
  CHECK(await_loss(link).message == "rank 1: a frame did not fit");
}

TEST_CASE("a Mac's queue pair with room for inline data is refused, and none of ours wants any") {
  Macs macs;
  LocalLinks links = macs.open_links();
  check_are_verbs(links, false);
  const VerbsLease lease = std::move(macs.machines[0].devices->take(0, IBV_QPT_UC).value());
  const VerbsChannel& channel = lease.channel();
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_UC;
  wanted.send_cq = wanted.recv_cq = channel.completions;
  wanted.cap.max_inline_data = 64;
  CHECK(lease.devices().api().create_qp(channel.queue_pair->pd, &wanted) == nullptr);
  wanted.cap.max_inline_data = 0;
  wanted.qp_type = IBV_QPT_RC;
  CHECK(lease.devices().api().create_qp(channel.queue_pair->pd, &wanted) == nullptr);
  // Accepted nowhere: RDMA READ.
  ibv_send_wr request{}, *bad = nullptr;
  ibv_sge piece{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  ibv_qp* const queue_pair = channel.queue_pair;
  CHECK(queue_pair->context->ops.post_send(queue_pair, &request, &bad) != 0);
}

TEST_CASE("all queue pairs of a Mac together need few of its 100 regions") {
  Macs macs;
  std::vector<LocalLinks> groups;
  for (int pair = 0; pair < kFakeAppleQueuePairs; ++pair) groups.push_back(macs.open_links());
  CHECK(macs.fake->queue_pairs == 2 * kFakeAppleQueuePairs);
  CHECK(macs.fake->regions <= 2 * VerbsDevices::kRegionsMax);
  CHECK(2 * VerbsDevices::kRegionsMax < kFakeAppleRegions);
}

TEST_CASE("a worn driver is a sentence that says the mend, and links stay on TCP") {
  const std::string mend =
      "Cannot allocate memory; Apple's driver wears out when devices are opened often: restart "
      "this machine";
  FakeScope fake(FakeMode::kApple);
  fake->opens_left = 3;
  std::string worn;
  for (int open = 0; open < 4; ++open) {  // as a program that opens the device each time
    const auto devices = VerbsDevices::open({.library = kFakeLibrary});
    if (!devices.ok()) worn = devices.error().message;
  }
  CHECK(worn == "the RDMA device fake0: opening it failed: " + mend);

  fake->opens_left = 2;
  const auto low = open_fake_devices(), high = open_fake_devices();
  const std::string no_domain =
      "the RDMA device fake0: getting a protection domain failed: " + mend;
  UpgradePair pair = upgrade_pair({.devices = low.get()}, {.devices = high.get()});
  check_stays_on_tcp(std::move(pair), no_domain, no_domain);
}

TEST_CASE("a cable that brings frames in one direction only ends the link at its deaf end") {
  for (const size_t mute : {0, 1}) {
    CAPTURE(mute);
    Macs macs;
    LocalLinks links = macs.open_links();
    Link &speaker = *links[mute][1 - mute], &listener = *links[1 - mute][mute];
    REQUIRE(try_send(speaker, 300, 1));
    REQUIRE(is_frame(await_frame(listener), 300, 1));
    listener.release();
    macs.fake->mute_port = macs.first_port + static_cast<uint32_t>(mute);
    REQUIRE(try_send(speaker, 300, 2));
    REQUIRE(try_send(listener, 300, 3));  // the other direction works
    REQUIRE(is_frame(await_frame(speaker), 300, 3));
    speaker.release();
    const Error error = loss_beside(listener, speaker);
    CHECK(error.code == ErrorCode::kPeerLost);
    CHECK(error.message ==
          "rank " + std::to_string(mute) +
              ": 1 of the 3 frames that it sent over RDMA have not arrived: the device "
              "dropped them, or the cable is dead in this direction");
    CHECK(speaker.health().ok());  // until the other end closes
    links[1 - mute].clear();
    CHECK(await_loss(speaker).message ==
          "rank " + std::to_string(1 - mute) + ": it closed the link");
  }
}

TEST_CASE("a cable that brings frames in one direction only is noticed when a link is set up") {
  Macs macs;
  macs.fake->mute_port = macs.first_port;
  check_stays_on_tcp(macs.upgrade(), std::string("rank 1: rank 0: ") + kNothingArrives,
                     std::string("rank 0: ") + kNothingArrives);
}

TEST_CASE("ports that are up without a partner leave all ranks on TCP before their deadline") {
  Macs macs;
  macs.fake->is_alone = 1;
  SUBCASE("two ranks") {
    check_stays_on_tcp(macs.upgrade(), std::string("rank 1: ") + kNothingArrives,
                       std::string("rank 0: ") + kNothingArrives);
  }
  SUBCASE("four ranks, which take turns for longer than the time-out") {
    while (macs.machines.size() < 4) macs.machines.push_back({open_fake_devices(), "127.0.0.1"});
    auto connections = connect_verbs_ranks(macs.machines, {.kind = LinkKind::kVerbs});
    std::vector<Result<VerbsUpgrade>> upgrades;
    for (size_t rank = 0; rank < 4; ++rank) upgrades.emplace_back(VerbsUpgrade{});
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        upgrades[rank] = upgrade_to_verbs(std::move(connections[rank]),
                                          {.timeout = std::chrono::milliseconds{3'500},
                                           .devices = macs.machines[rank].devices.get()});
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t rank = 0; rank < 4; ++rank) {
      REQUIRE_MESSAGE(upgrades[rank].ok(), upgrades[rank].error().message);
      CHECK(upgrades[rank].value().uses.size() == 3);
      for (const LinkUse& use : upgrades[rank].value().uses) {
        CHECK(use.path == LinkPath::kTcp);
        CHECK(use.reason.find(kNothingArrives) != std::string::npos);
      }
    }
  }
}

TEST_CASE("a message without a RECV is lost on a Mac") {
  Macs macs;
  LocalLinks links = macs.open_links();
  VerbsDevices& devices = *macs.machines[0].devices;
  VerbsQueue first(std::move(devices.take(0, IBV_QPT_UC).value()));
  VerbsQueue second(std::move(devices.take(0, IBV_QPT_UC).value()));
  const IpBytes address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  const VerbsPort port = devices.find(address).value();
  const VerbsQueue::Endpoint low{address, 0, first.number(), 1};
  const VerbsQueue::Endpoint high{address, 0, second.number(), 2};
  REQUIRE(first.connect({port, port.mtu, 4096, low, high}).ok());
  REQUIRE(second.connect({port, port.mtu, 4096, high, low}).ok());
  for (int i = 0; i < VerbsDevices::kDepth + 3; ++i) REQUIRE(first.post_send(0, 4096) == 0);
  CHECK(macs.fake->early_messages == 3);  // which no link of ours brings about
  ibv_wc found[2 * VerbsDevices::kDepth];
  CHECK(second.poll(found) == VerbsDevices::kDepth);
}

#endif
