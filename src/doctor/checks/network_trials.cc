#include "doctor/checks/network_trials.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/crypto/secrets.h"
#include "base/files/unique_fd.h"
#include "cluster/discovery/beacon.h"
#include "cluster/peers/peers.h"
#include "net/multicast.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// A datagram comes back at once or never; a loaded machine may need longer.
constexpr std::chrono::milliseconds kHearWait{1'000};
constexpr std::chrono::milliseconds kQuietWait{200};  // after the latest datagram

struct SocketKind {
  int family = AF_INET;
  int type = SOCK_STREAM;
};

enum class Trial { kFree, kTaken, kImpossible };

// Binds and releases. A program that shares its port (SO_REUSEADDR), as nodes do, does not count.
Trial try_bind(SocketKind kind, uint16_t port, uint16_t* bound = nullptr) {
  const UniqueFd fd(::socket(kind.family, kind.type, 0));
  if (!fd.is_open()) return Trial::kImpossible;
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (kind.family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    auto& address = reinterpret_cast<sockaddr_in6&>(storage);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    length = sizeof(address);
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    length = sizeof(address);
  }
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) != 0) {
    return errno == EADDRINUSE ? Trial::kTaken : Trial::kImpossible;
  }
  if (bound != nullptr && kind.family == AF_INET) {
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&storage), &length);
    *bound = ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }
  return Trial::kFree;
}

bool is_taken(int type, uint16_t port) {
  return port != 0 && (try_bind({AF_INET, type}, port) == Trial::kTaken ||
                       try_bind({AF_INET6, type}, port) == Trial::kTaken);
}

void hear(MulticastSockets& sockets, std::span<const std::byte> sent, MulticastTest& test) {
  const Clock::time_point deadline = Clock::now() + kHearWait;
  Clock::time_point end = deadline;
  while (true) {
    while (const auto datagram = sockets.receive()) {
      if (Clock::now() > deadline) return;
      if (!std::equal(datagram->bytes.begin(), datagram->bytes.end(), sent.begin(), sent.end())) {
        continue;
      }
      const std::string host = datagram->host.substr(0, datagram->host.find('%'));
      if (std::count(test.heard_from.begin(), test.heard_from.end(), host) > 0) continue;
      test.heard_from.push_back(host);
      end = std::min(deadline, Clock::now() + kQuietWait);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return;
    std::array<pollfd, 2> waiting{{{sockets.fd_v4(), POLLIN, 0}, {sockets.fd_v6(), POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
  }
}

}  // namespace

MulticastTest try_multicast() {
  MulticastTest test;
  uint16_t port = 0;
  std::array<std::byte, 32> bytes{};  // sent by no other program
  if (try_bind({AF_INET, SOCK_DGRAM}, 0, &port) != Trial::kFree || !fill_random(bytes).ok()) {
    test.error = "this machine has no UDP";
    return test;
  }
  auto sockets = MulticastSockets::open(
      {.group_v4 = Beacon::kGroupV4, .group_v6 = Beacon::kGroupV6, .port = port});
  if (!sockets.ok()) {
    test.error = sockets.error().message;
    return test;
  }
  test.sent = sockets.value().send(bytes);
  hear(sockets.value(), bytes, test);
  return test;
}

TakenPorts try_ports(uint16_t http_port) {
  return {.http = is_taken(SOCK_STREAM, http_port),
          .control = is_taken(SOCK_STREAM, Peers::kControlPort),
          .beacon = is_taken(SOCK_DGRAM, Peers::kBeaconPort)};
}

}  // namespace lockstep
