// Links over the RDMA devices rxe0 and rxe1 (10.77.0.1 and 10.77.0.2) of the virtual machine that
// tools/rdma-vm starts. Its devices are software on an emulated processor: this tests function,
// never speed.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "transport/verbs/verbs_link.h"
#include "transport/verbs_pairs.h"

using namespace lockstep;

namespace {

constexpr const char* kLow = "10.77.0.1";
constexpr const char* kHigh = "10.77.0.2";
constexpr std::chrono::milliseconds kLook{1};

std::unique_ptr<VerbsDevices> open_devices(bool unreliable) {
  auto devices = VerbsDevices::open({.unreliable = unreliable});
  REQUIRE_MESSAGE(devices.ok(), devices.error().message);
  return std::move(devices.value());
}

LinkPair open_pair(VerbsDevices& devices, uint32_t epoch = 1) {
  return LinkPair(devices, 0, epoch, SocketPair(kLow, kHigh));
}

// Like await_loss(), for a link that must send to detect the loss.
Error await_loss_of_sender(Link& link) {
  Wait wait(kVerbsTimeout);
  while (link.health().ok()) {
    try_send(link, 100, 1);
    if (!link.peek().empty()) link.release();
    link.wait_readable(kLook);
    if (Status waited = wait.pause("loss"); !waited.ok()) return waited.error();
  }
  return link.health().error();
}

// The separate process of rank 0: sends one frame and is silent.
[[noreturn]] void play_rank_0(UniqueFd socket, int ready, bool unreliable) {
  auto devices = VerbsDevices::open({.unreliable = unreliable});
  if (!devices.ok()) ::_exit(1);
  auto upgrade = upgrade_end(std::move(socket), 0, {.devices = devices.value().get()});
  if (!upgrade.ok() || !upgrade.value().refusal.empty()) ::_exit(2);
  if (!try_send(*upgrade.value().links[1], 100, 1)) ::_exit(3);
  if (::write(ready, "r", 1) != 1) ::_exit(4);
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("a peer process over soft-RoCE that is killed is lost within two seconds") {
  for (const bool unreliable : {false, true}) {
    CAPTURE(unreliable);
    SocketPair sockets(kLow, kHigh);
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      sockets.ends[1].reset();
      play_rank_0(std::move(sockets.ends[0]), ready[1], unreliable);
    }
    sockets.ends[0].reset();
    const auto devices = open_devices(unreliable);
    auto upgrade = upgrade_end(std::move(sockets.ends[1]), 1, {.devices = devices.get()});
    REQUIRE_MESSAGE(upgrade.ok(), upgrade.error().message);
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
    CHECK_MESSAGE(error.code == ErrorCode::kPeerLost, error.message);
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

TEST_CASE("this machine has two usable devices") {
  CHECK_MESSAGE(verbs_availability().ok(), verbs_availability().error().message);
  CHECK(verbs_addresses() == std::vector<std::string>{kLow, kHigh});
}

TEST_CASE("frames arrive over soft-RoCE whole and in order, on RC and UC") {
  for (const bool unreliable : {false, true}) {
    CAPTURE(unreliable);
    const auto devices = open_devices(unreliable);
    LinkPair links = open_pair(*devices);
    CHECK(dynamic_cast<VerbsLink&>(*links.left).is_reliable() == !unreliable);
    CHECK(links.left->frame_bytes_max() + kFrameHeaderBytes ==
          size_t{unreliable ? 16 * 1024u : 64 * 1024u});
    constexpr int kFrames = 100;
    int left_frames = 0;
    std::thread thread([&] { left_frames = exchange_frames(*links.left, kFrames, kLook); });
    CHECK(exchange_frames(*links.right, kFrames, kLook) == kFrames);
    thread.join();
    CHECK(left_frames == kFrames);
    CHECK(links.left->health().ok());
    CHECK(links.right->health().ok());
  }
}

TEST_CASE("groups one after the other reset and use the same queue pairs") {
  for (const bool unreliable : {false, true}) {
    CAPTURE(unreliable);
    const auto devices = open_devices(unreliable);
    for (uint32_t epoch = 1; epoch <= 10; ++epoch) {
      LinkPair links = open_pair(*devices, epoch);
      REQUIRE(try_send(*links.left, 1000, static_cast<int>(epoch)));
      REQUIRE(is_frame(await_frame(*links.right), 1000, static_cast<int>(epoch)));
      links.right->release();
      links.left.reset();
      CHECK(await_loss(*links.right).code == ErrorCode::kPeerLost);
    }
    CHECK(devices->counts().queue_pairs == 2);
    CHECK(devices->counts().regions == 2);  // one per device
  }
}

// Runs last: it takes the network down.
TEST_CASE("a port that goes down breaks its links") {
  const auto devices = open_devices(false), unreliable = open_devices(true);
  LinkPair reliable_links = open_pair(*devices), unreliable_links = open_pair(*unreliable);
  REQUIRE(std::system("ip link set rdma0 down") == 0);
  const Error first = await_loss_of_sender(*reliable_links.left);
  CHECK_MESSAGE(first.code == ErrorCode::kPeerLost, first.message);
  const Error second = await_loss_of_sender(*unreliable_links.left);
  CHECK_MESSAGE(second.code == ErrorCode::kPeerLost, second.message);
  MESSAGE(first.message);
  MESSAGE(second.message);
}
