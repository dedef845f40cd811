#include "transport/verbs/verbs_upgrade.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/railed_link.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp_link.h"
#include "transport/verbs/verbs_note.h"
#include "transport/verbs/verbs_pair.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

#ifdef LOCKSTEP_HAS_VERBS

Result<IpBytes> local_address(int socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return socket_error(ErrorCode::kInternal, "asking for the address of a connection failed");
  }
  IpBytes address{};
  if (bound.ss_family == AF_INET6) {
    std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(bound).sin6_addr, 16);
  } else if (bound.ss_family == AF_INET) {
    address[10] = address[11] = 0xff;
    std::memcpy(&address[12], &reinterpret_cast<const sockaddr_in&>(bound).sin_addr, 4);
  } else {
    return Error{ErrorCode::kUnsupported, "the connection has no internet address"};
  }
  return address;
}

#endif

// One connection that may become a link.
struct Candidate {
  int peer = 0;
  PeerConnection connection;
  Status fitness = Ok{};  // why it cannot use RDMA
#ifdef LOCKSTEP_HAS_VERBS
  VerbsPort port{};
#endif
};

std::vector<Candidate> list_candidates(PeerConnections connections) {
  std::vector<Candidate> candidates;
  for (size_t peer = 0; peer < connections.size(); ++peer) {
    for (PeerConnection& connection : connections[peer]) {
      candidates.emplace_back();
      candidates.back().peer = static_cast<int>(peer);
      candidates.back().connection = std::move(connection);
    }
  }
  return candidates;
}

#ifdef LOCKSTEP_HAS_VERBS

// Finds each connection's port, and memory for all that share a device; null without devices.
VerbsDevices* prepare(std::vector<Candidate>& candidates, const VerbsUpgradeOptions& options) {
  const Result<VerbsDevices*> opened =
      options.devices != nullptr ? options.devices : VerbsDevices::of_process();
  std::vector<std::pair<size_t, int>> counts;  // device, connections over it
  for (Candidate& candidate : candidates) {
    const Result<IpBytes> address = local_address(candidate.connection.socket.get());
    candidate.fitness = !opened.ok()    ? Status(opened.error())
                        : !address.ok() ? Status(address.error())
                                        : Status(Ok{});
    if (!candidate.fitness.ok()) continue;
    const Result<VerbsPort> port = opened.value()->find(address.value());
    if (!port.ok()) {
      candidate.fitness = port.error();
      continue;
    }
    candidate.port = port.value();
    const auto same = [&](const auto& entry) { return entry.first == port.value().device; };
    const auto found = std::find_if(counts.begin(), counts.end(), same);
    if (found != counts.end()) ++found->second;
    if (found == counts.end()) counts.emplace_back(port.value().device, 1);
  }
  for (const auto& [device, count] : counts) {
    const Status reserved = opened.value()->reserve(device, count);
    for (Candidate& candidate : candidates) {
      const bool is_meant = candidate.fitness.ok() && candidate.port.device == device;
      if (is_meant && !reserved.ok()) candidate.fitness = reserved;
    }
  }
  return opened.ok() ? opened.value() : nullptr;
}

#else

VerbsDevices* prepare(std::vector<Candidate>& candidates, const VerbsUpgradeOptions&) {
  for (Candidate& candidate : candidates) candidate.fitness = verbs_availability();
  return nullptr;
}

#endif

// A connection over RDMA, or none if it stays on TCP, and why.
struct Attempt {
  std::unique_ptr<Link> link;
  bool is_reliable = false;
  std::string refusal;
  std::string device;
};

Result<Attempt> try_verbs(Candidate& candidate, VerbsDevices* devices,
                          const VerbsUpgradeOptions& options, const ExchangeLimits& limits) {
  Attempt attempt;
#ifdef LOCKSTEP_HAS_VERBS
  if (candidate.fitness.ok()) {
    VerbsPair pair(candidate.connection.socket, *devices, candidate.port,
                   {.peer = candidate.peer,
                    .epoch = options.epoch,
                    .frame_bytes = options.frame_bytes,
                    .limits = limits});
    attempt.link = TRY(pair.run());
    attempt.is_reliable = pair.is_reliable();
    attempt.device = candidate.port.device_name;
    attempt.refusal = pair.refusal();
    return attempt;
  }
#endif
  static_cast<void>(devices);
  static_cast<void>(options);
  VerbsNote own, peer;  // the other side must be told that we cannot
  [[maybe_unused]] const bool is_agreed = TRY(exchange_notes(
      candidate.connection.socket.get(), own, peer, candidate.fitness, limits, attempt.refusal));
  return attempt;
}

// Pairs take their turns, and each may find a port that is up without a partner: a rank that waits
// for its turn must not take that for silence. Two ranks with one rail need only the time-out.
Clock::duration turns_max(size_t ranks, const LinkOptions& link) {
#ifdef LOCKSTEP_HAS_VERBS
  const auto pairs = static_cast<int>(ranks > 2 ? 2 * (ranks - 2) : 0);  // of either rank
  return VerbsPair::kTrialsMax * (pairs * link.rails + link.rails - 1);
#else
  static_cast<void>(ranks);
  static_cast<void>(link);
  return {};
#endif
}

// The use of a pair before its rails are counted.
Result<LinkUse> first_use(const Candidate& candidate) {
  SocketEnds ends = TRY(socket_ends(candidate.connection.socket.get()));
  return LinkUse{.peer = candidate.peer,
                 .path = LinkPath::kTcp,
                 .rails = 0,
                 .own_host = std::move(ends.own),
                 .peer_host = std::move(ends.peer)};
}

// Records the outcome of one more rail of a pair.
void note_rail(LinkUse& use, const Attempt& attempt, bool is_encrypted) {
  ++use.rails;
  if (attempt.link) {
    use.path = attempt.is_reliable ? LinkPath::kVerbsRc : LinkPath::kVerbsUc;
    if (use.device.empty()) use.device = attempt.device;
    return;
  }
  ++use.tcp_rails;
  use.is_encrypted = is_encrypted;
  if (use.reason.empty()) use.reason = attempt.refusal;
}

// A pair whose rails all stayed on TCP uses TCP; a pair with some RDMA is not fully encrypted.
void settle_use(LinkUse& use) {
  if (use.path == LinkPath::kTcp) {
    use.tcp_rails = 0;
  } else {
    use.is_encrypted = false;
  }
}

}  // namespace

Status verbs_availability() {
#ifdef LOCKSTEP_HAS_VERBS
  VerbsDevices* const devices = TRY(VerbsDevices::of_process());
  if (!devices->addresses().empty()) return Ok{};
  return Error{ErrorCode::kUnsupported, "no RDMA device has an active port with an IPv4 address"};
#else
  return Error{ErrorCode::kUnsupported,
               "this build has no RDMA: infiniband/verbs.h was missing when it was made"};
#endif
}

std::vector<std::string> verbs_addresses() {
  std::vector<std::string> texts;
#ifdef LOCKSTEP_HAS_VERBS
  Result<VerbsDevices*> devices = VerbsDevices::of_process();
  if (!devices.ok()) return texts;
  for (const IpBytes& address : devices.value()->addresses()) {
    char text[INET_ADDRSTRLEN] = {};
    if (::inet_ntop(AF_INET, &address[12], text, sizeof(text)) != nullptr) texts.push_back(text);
  }
#endif
  return texts;
}

uint64_t verbs_late_frame_count() {
#ifdef LOCKSTEP_HAS_VERBS
  return VerbsDevices::late_frame_count_of_process();
#else
  return 0;
#endif
}

// Every rank takes its pairs in ascending order, so both ranks of the first remaining pair are at
// it, and there is no deadlock.
Result<VerbsUpgrade> upgrade_to_verbs(PeerConnections connections,
                                      const VerbsUpgradeOptions& options) {
  const Clock::time_point deadline =
      Clock::now() + options.timeout + turns_max(connections.size(), options.link);
  VerbsUpgrade upgrade;
  upgrade.links.resize(connections.size());
  std::vector<std::vector<std::unique_ptr<Link>>> rails(connections.size());
  std::vector<Candidate> candidates = list_candidates(std::move(connections));
  VerbsDevices* const devices = prepare(candidates, options);
  for (Candidate& candidate : candidates) {
    PeerConnection& connection = candidate.connection;
    TRY(set_up_socket(connection.socket.get()));
    // First, because a link over RDMA takes the socket.
    if (upgrade.uses.empty() || upgrade.uses.back().peer != candidate.peer) {
      upgrade.uses.push_back(TRY(first_use(candidate)));
    }
    const ExchangeLimits limits{candidate.peer, deadline, options.cancelled};
    Attempt attempt = TRY(try_verbs(candidate, devices, options, limits));
    note_rail(upgrade.uses.back(), attempt, connection.keys.has_value());
    if (!attempt.link) {
      if (upgrade.refusal.empty()) upgrade.refusal = attempt.refusal;
      attempt.link = TRY(
          TcpLink::open(std::move(connection.socket),
                        {.peer = candidate.peer, .epoch = options.epoch, .keys = connection.keys}));
    }
    rails[static_cast<size_t>(candidate.peer)].push_back(std::move(attempt.link));
  }
  for (LinkUse& use : upgrade.uses) settle_use(use);
  for (size_t peer = 0; peer < rails.size(); ++peer) {
    if (rails[peer].empty()) continue;
    upgrade.links[peer] = join_rails(std::move(rails[peer]), options.link, static_cast<int>(peer));
  }
  return upgrade;
}

}  // namespace lockstep
