#include "transport/form/local_links.h"

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <optional>
#include <string>
#include <utility>

#include "base/crypto/secrets.h"
#include "transport/railed_link.h"
#include "transport/shm/shm_link.h"
#include "transport/tcp/rendezvous.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp_link.h"
#include "transport/verbs/verbs_upgrade.h"

namespace lockstep {
namespace {

using Pair = std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>>;

constexpr int kArrivalMaxMs = 5000;

Result<Pair> open_shm_pair(int low, int high, uint32_t epoch) {
  UniqueFd fd = TRY(ShmLink::create_region());
  Pair pair;
  pair.first = TRY(ShmLink::open(fd.get(), {.side = 0, .peer = high, .epoch = epoch}));
  pair.second = TRY(ShmLink::open(fd.get(), {.side = 1, .peer = low, .epoch = epoch}));
  return pair;
}

struct Sockets {
  UniqueFd low;
  UniqueFd high;
};

// No other process knows the port, so there is no handshake. connect() completes without an
// accept(); between two devices of this machine the listening side may see it a moment later.
Result<Sockets> connect_pair(const std::string& low_host, const std::string& high_host) {
  TcpListener listener = TRY(TcpListener::open(low_host));
  auto address = TRY(resolve_numeric(low_host, listener.port()));
  auto own = TRY(resolve_numeric(high_host, 0));
  UniqueFd calling(::socket(AF_INET, SOCK_STREAM, 0));
  if (::bind(calling.get(), own->ai_addr, own->ai_addrlen) != 0 ||
      ::connect(calling.get(), address->ai_addr, address->ai_addrlen) != 0) {
    return socket_error(ErrorCode::kInternal, "connecting to this machine failed");
  }
  pollfd arriving{listener.fd(), POLLIN, 0};
  ::poll(&arriving, 1, kArrivalMaxMs);
  UniqueFd called(::accept(listener.fd(), nullptr, nullptr));
  if (!called.is_open()) return socket_error(ErrorCode::kInternal, "accepting failed");
  return Sockets{std::move(called), std::move(calling)};
}

Result<Pair> open_tcp_pair(int low, int high, uint32_t epoch, bool encrypts) {
  Sockets sockets = TRY(connect_pair("127.0.0.1", "127.0.0.1"));
  std::optional<LinkKeys> first, second;
  if (encrypts) {
    first.emplace();
    TRY(fill_random(first->send));
    TRY(fill_random(first->receive));
    second = LinkKeys{first->cipher, first->receive, first->send};
  }
  Pair pair;
  pair.first =
      TRY(TcpLink::open(std::move(sockets.low), {.peer = high, .epoch = epoch, .keys = first}));
  pair.second =
      TRY(TcpLink::open(std::move(sockets.high), {.peer = low, .epoch = epoch, .keys = second}));
  return pair;
}

// One end of a pair. There is no fallback here: TCP instead would hide that RDMA was not used.
Result<std::unique_ptr<Link>> open_verbs_end(UniqueFd socket, int peer, uint32_t epoch) {
  PeerConnections connections(static_cast<size_t>(peer) + 1);
  connections.back().push_back({std::move(socket), std::nullopt});
  VerbsUpgrade upgrade = TRY(upgrade_to_verbs(std::move(connections), {.epoch = epoch}));
  if (!upgrade.refusal.empty()) return Error{ErrorCode::kUnsupported, upgrade.refusal};
  return std::move(upgrade.links.back());
}

// The ranks take the addresses of the RDMA ports in turn. Both ends negotiate with each other, so
// they need two threads.
Result<Pair> open_verbs_pair(int low, int high, uint32_t epoch) {
  TRY(verbs_availability());
  const std::vector<std::string> hosts = verbs_addresses();
  const auto host = [&](int rank) { return hosts[static_cast<size_t>(rank) % hosts.size()]; };
  Sockets sockets = TRY(connect_pair(host(low), host(high)));
  auto second = std::async(std::launch::async,
                           [&] { return open_verbs_end(std::move(sockets.high), low, epoch); });
  Result<std::unique_ptr<Link>> first = open_verbs_end(std::move(sockets.low), high, epoch);
  Pair pair;
  pair.second = TRY(second.get());
  pair.first = TRY(std::move(first));
  return pair;
}

Result<Pair> open_rail(const LinkOptions& options, int low, int high, uint32_t epoch) {
  switch (options.kind) {
    case LinkKind::kTcp:
      return open_tcp_pair(low, high, epoch, options.encrypts);
    case LinkKind::kVerbs:
      return open_verbs_pair(low, high, epoch);
    default:
      return open_shm_pair(low, high, epoch);
  }
}

Result<Pair> open_pair(const LinkOptions& options, int low, int high, uint32_t epoch) {
  std::vector<std::unique_ptr<Link>> first, second;
  for (int rail = 0; rail < options.rails; ++rail) {
    Pair pair = TRY(open_rail(options, low, high, epoch));
    first.push_back(std::move(pair.first));
    second.push_back(std::move(pair.second));
  }
  return Pair{join_rails(std::move(first), options, high),
              join_rails(std::move(second), options, low)};
}

}  // namespace

Result<LocalLinks> open_local_links(const LinkOptions& options, int size, uint32_t epoch) {
  TRY(check_link_options(options));
  LocalLinks links(static_cast<size_t>(size));
  for (auto& row : links) row.resize(static_cast<size_t>(size));
  for (int low = 0; low < size; ++low) {
    for (int high = low + 1; high < size; ++high) {
      if (!is_joined(options, size, low, high)) continue;
      Pair pair = TRY(open_pair(options, low, high, epoch));
      links[static_cast<size_t>(low)][static_cast<size_t>(high)] = std::move(pair.first);
      links[static_cast<size_t>(high)][static_cast<size_t>(low)] = std::move(pair.second);
    }
  }
  return links;
}

}  // namespace lockstep
