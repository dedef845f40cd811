#include "node/worker/worker_links.h"

#include <fmt/format.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "base/log.h"
#include "transport/shm/shm_link.h"
#include "transport/slowed_link.h"
#include "transport/tcp/rendezvous.h"
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

// Where each rank is reached, and where this one listens. If all are on this machine, over RDMA
// they use the addresses of its ports in turn, which every rank lists alike.
Result<std::vector<std::string>> hosts_of_ranks(const WorkerSetup& setup) {
  if (!setup.hosts.empty()) {
    if (setup.hosts.size() == setup.spec.shares.size()) return setup.hosts;
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
  WorkerLinks opened;
  opened.links = TRY(connect_ranks(listener, addresses, options));
  for (size_t peer = 0; peer < opened.links.size(); ++peer) {
    if (!opened.links[peer]) continue;
    opened.uses.push_back({.peer = static_cast<int>(peer),
                           .path = LinkPath::kTcp,
                           .rails = options.link.rails,
                           .is_encrypted = is_encrypted(options.link, addresses)});
  }
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
  const int own_port = listener.port();
  control.send(Message::kListening, encode_ports({&own_port, 1}));
  const std::vector<int> ports = TRY(decode_ports(TRY(control.wait_ports(kPortsWaitMax))));
  if (ports.size() != setup.spec.shares.size()) {
    return Error{ErrorCode::kCorrupt, "every rank must have one port"};
  }
  std::vector<TcpAddress> addresses;
  for (size_t rank = 0; rank < ports.size(); ++rank) {
    addresses.push_back({hosts[rank], static_cast<uint16_t>(ports[rank])});
  }
  return setup.spec.link.kind == LinkKind::kVerbs ? connect_verbs(listener, addresses, options)
                                                  : connect_tcp(listener, addresses, options);
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
