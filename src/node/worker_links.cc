#include "node/worker_links.h"

#include <charconv>
#include <chrono>
#include <string_view>

#include "transport/rendezvous.h"
#include "transport/shm_link.h"
#include "transport/slowed_link.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPortsWaitMax{30};
constexpr std::chrono::seconds kConnectMax{10};
constexpr const char* kLoopback = "127.0.0.1";

Result<std::vector<std::unique_ptr<Link>>> open_shared_links(const WorkerSetup& setup,
                                                             const EpochOrder& order) {
  if (order.regions.size() + 1 != setup.shares.size()) {
    return Error{ErrorCode::kCorrupt, "there must be shared memory for each other rank"};
  }
  std::vector<std::unique_ptr<Link>> links(setup.shares.size());
  for (int peer = 0; peer < setup.size(); ++peer) {
    if (peer == setup.rank) continue;
    if (!is_joined(setup.link.topology, setup.size(), setup.rank, peer)) continue;
    const UniqueFd& region =
        order.regions[static_cast<size_t>(peer < setup.rank ? peer : peer - 1)];
    ShmLink::Options options;
    options.side = setup.rank < peer ? 0 : 1;
    options.peer = peer;
    options.epoch = static_cast<uint32_t>(order.setup.epoch);
    links[static_cast<size_t>(peer)] =
        slow_down(TRY(ShmLink::open(region.get(), options)), setup.link, peer);
  }
  return links;
}

// 32 hexadecimal digits.
Result<GroupToken> parse_token(std::string_view text) {
  GroupToken token{};
  if (text.size() != 2 * token.size()) {
    return Error{ErrorCode::kCorrupt, "a group's token has 32 digits"};
  }
  for (size_t i = 0; i < token.size(); ++i) {
    uint8_t value = 0;
    const char* const end = text.data() + 2 * i + 2;
    if (std::from_chars(text.data() + 2 * i, end, value, 16).ptr != end) {
      return Error{ErrorCode::kCorrupt, "a group's token has hexadecimal digits only"};
    }
    token[i] = static_cast<std::byte>(value);
  }
  return token;
}

Result<std::vector<std::unique_ptr<Link>>> connect_links(const WorkerSetup& setup,
                                                         const EpochSetup& epoch,
                                                         WorkerControl& control,
                                                         uint64_t& late_count) {
  RendezvousOptions options;
  options.rank = setup.rank;
  options.epoch = static_cast<uint32_t>(epoch.epoch);
  options.token = TRY(parse_token(epoch.token));
  options.late_count = &late_count;
  options.timeout = kConnectMax;
  options.link = setup.link;
  options.cancelled = control.cancelled();
  const TcpListener listener = TRY(TcpListener::open(kLoopback));
  const int own_port = listener.port();
  control.send(Message::kListening, encode_ports({&own_port, 1}));
  const std::vector<int> ports = TRY(decode_ports(TRY(control.wait_ports(kPortsWaitMax))));
  if (ports.size() != setup.shares.size()) {
    return Error{ErrorCode::kCorrupt, "every rank must have one port"};
  }
  std::vector<TcpAddress> addresses;
  for (int port : ports) addresses.push_back({kLoopback, static_cast<uint16_t>(port)});
  auto links = TRY(connect_ranks(listener, addresses, options));
  for (int peer = 0; peer < setup.size(); ++peer) {
    if (is_joined(setup.link.topology, setup.size(), setup.rank, peer)) continue;
    links[static_cast<size_t>(peer)].reset();
  }
  return links;
}

}  // namespace

Result<std::vector<std::unique_ptr<Link>>> open_worker_links(const WorkerSetup& setup,
                                                             const EpochOrder& order,
                                                             WorkerControl& control,
                                                             uint64_t& late_count) {
  TRY(check_link_options(setup.link));
  return setup.link.kind == LinkKind::kShm ? open_shared_links(setup, order)
                                           : connect_links(setup, order.setup, control, late_count);
}

}  // namespace lockstep
