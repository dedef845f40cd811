#include "node/worker/worker_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "base/log.h"
#include "transport/shm/shm_link.h"
#include "transport/slowed_link.h"
#include "transport/tcp/rendezvous.h"
#include "transport/tcp/socket.h"
#include "transport/verbs/verbs_upgrade.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPortsWaitMax{30};
constexpr std::chrono::seconds kConnectMax{10};
constexpr const char* kLoopbackHost = "127.0.0.1";

Result<WorkerLinks> open_shared_links(const WorkerSetup& setup, const EpochOrder& order) {
  WorkerLinks opened;
  opened.links.resize(setup.spec.shares.size());
  for (int peer = 0; peer < setup.size(); ++peer) {
    if (!is_joined(setup.spec.link, setup.size(), setup.rank, peer)) continue;
    if (opened.uses.size() == order.regions.size()) {
      return Error{ErrorCode::kCorrupt, "each link needs shared memory"};
    }
    const UniqueFd& region = order.regions[opened.uses.size()];
    ShmLink::Options options;
    options.side = setup.rank < peer ? 0 : 1;
    options.peer = peer;
    options.epoch = static_cast<uint32_t>(order.setup.epoch);
    opened.links[static_cast<size_t>(peer)] =
        slow_down(TRY(ShmLink::open(region.get(), options)), setup.spec.link, peer);
    opened.uses.push_back({.peer = peer, .path = LinkPath::kShm});
  }
  return opened;
}

// Where each rank is reached without data networks, and where this one listens. If all are on this
// machine, over RDMA they use the addresses of its ports in turn, which every rank lists alike.
Result<std::vector<std::string>> hosts_of_ranks(const WorkerSetup& setup) {
  if (!setup.hosts.empty()) {
    const size_t ranks = setup.spec.shares.size();
    const bool has_paths = setup.paths.empty() || setup.paths.size() == ranks;
    if (setup.hosts.size() == ranks && has_paths) return setup.hosts;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("rank {} of {} got the addresses of {} ranks", setup.rank,
                             setup.spec.shares.size(), setup.hosts.size())};
  }
  std::vector<std::string> addresses;
  if (setup.spec.link.kind == LinkKind::kVerbs) addresses = verbs_addresses();
  if (addresses.empty()) addresses.push_back(kLoopbackHost);
  std::vector<std::string> hosts;
  for (size_t rank = 0; rank < setup.spec.shares.size(); ++rank) {
    hosts.push_back(addresses[rank % addresses.size()]);
  }
  return hosts;
}

// Those of this rank's addresses in data networks that belong to active RDMA ports.
std::vector<std::string> rdma_hosts(const WorkerSetup& setup) {
  std::vector<std::string> own;
  if (setup.spec.link.kind != LinkKind::kVerbs || setup.paths.empty()) return own;
  const std::vector<std::string> active = verbs_addresses();
  for (const DataPaths& peer : setup.paths) {
    for (const DataPath& path : peer.paths) {
      const bool is_active = std::find(active.begin(), active.end(), path.own) != active.end();
      const bool is_new = std::find(own.begin(), own.end(), path.own) == own.end();
      if (is_active && is_new && own.size() < kDataAddressesMax) own.push_back(path.own);
    }
  }
  return own;
}

// Where this rank calls each rank: over the data network that both ends prefer, else at its host.
std::vector<TcpAddress> addresses_of_ranks(const WorkerSetup& setup,
                                           const std::vector<std::string>& hosts,
                                           const RankListening& own,
                                           const std::vector<RankListening>& all) {
  std::vector<TcpAddress> addresses;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    TcpAddress& address = addresses.emplace_back();
    address.host = hosts[rank];
    address.port = static_cast<uint16_t>(all[rank].port);
    if (setup.paths.empty()) continue;
    const DataPath* const path = best_path(setup.paths[rank], own.rdma_hosts, all[rank].rdma_hosts);
    if (path == nullptr) continue;
    address.host = path->peer;
    address.from = path->own;
  }
  return addresses;
}

// RDMA if possible, otherwise TCP with a log message.
Result<WorkerLinks> connect_verbs(const TcpListener& listener,
                                  std::span<const TcpAddress> addresses,
                                  const RendezvousOptions& options) {
  VerbsUpgrade upgrade = TRY(upgrade_to_verbs(TRY(connect_sockets(listener, addresses, options)),
                                              {.epoch = options.epoch,
                                               .timeout = options.timeout,
                                               .cancelled = options.cancelled,
                                               .link = options.link}));
  if (!upgrade.refusal.empty()) {
    log_warn("rank {} uses TCP instead of RDMA: {}", options.rank, upgrade.refusal);
  }
  return WorkerLinks{std::move(upgrade.links), std::move(upgrade.uses)};
}

Result<WorkerLinks> connect_tcp(const TcpListener& listener, std::span<const TcpAddress> addresses,
                                const RendezvousOptions& options) {
  PeerConnections connections = TRY(connect_sockets(listener, addresses, options));
  WorkerLinks opened;
  for (size_t peer = 0; peer < connections.size(); ++peer) {
    if (connections[peer].empty()) continue;
    SocketEnds ends = TRY(socket_ends(connections[peer].front().socket.get()));
    opened.uses.push_back({.peer = static_cast<int>(peer),
                           .path = LinkPath::kTcp,
                           .rails = options.link.rails,
                           .is_encrypted = is_encrypted(options.link, addresses),
                           .own_host = std::move(ends.own),
                           .peer_host = std::move(ends.peer)});
  }
  opened.links = TRY(open_tcp_links(std::move(connections), options.link, options.epoch));
  return opened;
}

Result<GroupToken> parse_token(std::string_view text) {
  GroupToken token{};
  if (!from_hex(text, token)) {
    return Error{ErrorCode::kCorrupt, "a group's token has 32 hexadecimal digits"};
  }
  return token;
}

Result<WorkerLinks> connect_links(const WorkerSetup& setup, const EpochSetup& epoch,
                                  WorkerControl& control, uint64_t& late_count) {
  RendezvousOptions options;
  options.rank = setup.rank;
  options.epoch = static_cast<uint32_t>(epoch.epoch);
  options.token = TRY(parse_token(epoch.token));
  options.late_count = &late_count;
  options.timeout = kConnectMax;
  options.link = setup.spec.link;
  options.cancelled = control.cancelled();
  const std::vector<std::string> hosts = TRY(hosts_of_ranks(setup));
  const TcpListener listener = TRY(TcpListener::open(hosts[static_cast<size_t>(setup.rank)]));
  const RankListening own{listener.port(), rdma_hosts(setup)};
  control.send(Message::kListening, encode_listening({&own, 1}));
  const std::vector<RankListening> all =
      TRY(decode_listening(TRY(control.wait_ports(kPortsWaitMax))));
  if (all.size() != setup.spec.shares.size()) {
    return Error{ErrorCode::kCorrupt, "every rank must have one port"};
  }
  const std::vector<TcpAddress> addresses = addresses_of_ranks(setup, hosts, own, all);
  WorkerLinks opened =
      TRY(setup.spec.link.kind == LinkKind::kVerbs ? connect_verbs(listener, addresses, options)
                                                   : connect_tcp(listener, addresses, options));
  for (LinkUse& use : opened.uses) {
    const auto peer = static_cast<size_t>(use.peer);
    if (!setup.paths.empty()) use.network_note = setup.paths[peer].note;
  }
  return opened;
}

}  // namespace

Result<WorkerLinks> open_worker_links(const WorkerSetup& setup, const EpochOrder& order,
                                      WorkerControl& control, uint64_t& late_count) {
  TRY(check_link_options(setup.spec.link));
  return setup.spec.link.kind == LinkKind::kShm
             ? open_shared_links(setup, order)
             : connect_links(setup, order.setup, control, late_count);
}

}  // namespace lockstep
