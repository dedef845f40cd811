// Pairs of links over RDMA in a test, over any devices, and self-describing frames.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/wait.h"
#include "transport/tcp/rendezvous.h"
#include "transport/tcp/socket.h"
#include "transport/verbs/verbs_devices.h"
#include "transport/verbs/verbs_upgrade.h"

namespace lockstep {

inline constexpr std::chrono::milliseconds kVerbsTimeout{20'000};

// Two ends of a TCP connection: rank 0's and rank 1's.
struct SocketPair {
  UniqueFd ends[2];

  explicit SocketPair(const char* low = "127.0.0.1", const char* high = "127.0.0.1") {
    TcpListener listener = std::move(TcpListener::open(low).value());
    auto own = std::move(resolve_numeric(high, 0).value());
    auto address = std::move(resolve_numeric(low, listener.port()).value());
    ends[1].reset(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::bind(ends[1].get(), own->ai_addr, own->ai_addrlen) == 0);
    REQUIRE(::connect(ends[1].get(), address->ai_addr, address->ai_addrlen) == 0);
    // Over two network devices the accepted connection may arrive a little later.
    pollfd polled{listener.fd(), POLLIN, 0};
    REQUIRE(::poll(&polled, 1, static_cast<int>(kVerbsTimeout.count())) == 1);
    ends[0].reset(::accept(listener.fd(), nullptr, nullptr));
    REQUIRE(ends[0].is_open());
  }
};

// The result of the upgrade at rank `rank` of two.
inline Result<VerbsUpgrade> upgrade_end(UniqueFd socket, int rank, VerbsUpgradeOptions options) {
  PeerConnections connections(2);
  connections[static_cast<size_t>(1 - rank)].push_back({std::move(socket), std::nullopt});
  return upgrade_to_verbs(std::move(connections), options);
}

using UpgradePair = std::pair<Result<VerbsUpgrade>, Result<VerbsUpgrade>>;

inline UpgradePair upgrade_pair(const VerbsUpgradeOptions& first, const VerbsUpgradeOptions& second,
                                SocketPair sockets = SocketPair()) {
  Result<VerbsUpgrade> low = VerbsUpgrade{};
  std::thread thread([&] { low = upgrade_end(std::move(sockets.ends[0]), 0, first); });
  Result<VerbsUpgrade> high = upgrade_end(std::move(sockets.ends[1]), 1, second);
  thread.join();
  return {std::move(low), std::move(high)};
}

// Rank 0's link to rank 1 and the reverse.
struct LinkPair {
  std::unique_ptr<Link> left, right;

  explicit LinkPair(VerbsDevices& devices, size_t frame_bytes = 0, uint32_t epoch = 1,
                    SocketPair sockets = SocketPair()) {
    const VerbsUpgradeOptions options{
        .epoch = epoch, .devices = &devices, .frame_bytes = frame_bytes};
    auto [low, high] = upgrade_pair(options, options, std::move(sockets));
    REQUIRE_MESSAGE(low.ok(), low.error().message);
    REQUIRE_MESSAGE(high.ok(), high.error().message);
    REQUIRE_MESSAGE(low.value().refusal == "", low.value().refusal);
    REQUIRE(high.value().refusal == "");
    left = std::move(low.value().links[1]);
    right = std::move(high.value().links[0]);
  }
};

// Sends a frame that contains its length and seed. False if there is no room.
inline bool try_send(Link& link, size_t bytes, int seed) {
  const auto frame = link.acquire(bytes);
  if (frame.empty()) return false;
  for (size_t i = 0; i < bytes; ++i) frame[i] = static_cast<std::byte>(seed + i * 7);
  link.post();
  return true;
}

inline bool is_frame(std::span<const std::byte> frame, size_t bytes, int seed) {
  if (frame.size() != bytes) return false;
  for (size_t i = 0; i < bytes; ++i) {
    if (frame[i] != static_cast<std::byte>(seed + i * 7)) return false;
  }
  return true;
}

// Sends frames of mixed lengths and expects as many, like a rank of a busy group. Returns how many
// arrived, -1 after a wrong one. Sleeps `idle` if nothing moves, for a kernel that has to run.
inline int exchange_frames(Link& link, int frames, std::chrono::microseconds idle = {}) {
  const auto length = [&](int i) {
    return static_cast<size_t>(1 + i * 7919) % link.frame_bytes_max() + 1;
  };
  int sent = 0, received = 0;
  Wait wait(kVerbsTimeout);
  while (sent < frames || received < frames) {
    bool has_moved = sent < frames && try_send(link, length(sent), sent);
    if (has_moved) ++sent;
    if (!link.peek().empty()) {
      if (!is_frame(link.peek(), length(received), received)) return -1;
      link.release();
      ++received;
      has_moved = true;
    }
    if (has_moved) {
      wait.restart();
      continue;
    }
    if (!link.health().ok() || !wait.pause("frame").ok()) break;
    if (idle.count() > 0) link.wait_readable(idle);
  }
  return received;
}

// Empty if the link is lost or nothing arrives.
inline std::span<const std::byte> await_frame(Link& link,
                                              std::chrono::milliseconds most = kVerbsTimeout) {
  Wait wait(most);
  while (link.peek().empty()) {
    if (!link.health().ok() || !wait.pause("frame").ok()) return {};
  }
  return link.peek();
}

// The error of the link; kTimeout if there is none.
inline Error await_loss(Link& link, std::chrono::milliseconds most = kVerbsTimeout) {
  Wait wait(most);
  while (link.health().ok()) {
    if (!link.peek().empty()) link.release();
    if (Status waited = wait.pause("loss"); !waited.ok()) return waited.error();
  }
  return link.health().error();
}

}  // namespace lockstep
