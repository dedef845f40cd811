// How the ranks of a group find each other over TCP: each listens on its own port, the caller that
// forms the group distributes the addresses, and each pair makes one connection per rail, with a
// handshake. Strangers and ranks of another group or epoch are rejected without harm. Blocks until
// its deadline; for set-up only.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "transport/link.h"
#include "transport/link_keys.h"
#include "transport/link_options.h"

namespace lockstep {

struct TcpAddress {
  std::string host;  // numeric, IPv4 or IPv6: name resolution has no deadline
  uint16_t port = 0;
  // Numeric: this machine's address to call it from, which stands for a network, or for an RDMA
  // device. Empty: the own listening address, unless that is a wildcard.
  std::string from{};
};

class TcpListener {
 public:
  // Listens on a free port of `host`. "0.0.0.0": all IPv4 addresses of the machine; "::": all
  // addresses, also if the machine has no IPv6.
  static Result<TcpListener> open(const std::string& host);

  const TcpAddress& address() const { return address_; }
  uint16_t port() const { return address_.port; }
  int fd() const { return socket_.get(); }

 private:
  TcpListener(UniqueFd socket, TcpAddress address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  TcpAddress address_;
};

// The group's secret, new for each group: it tells its ranks from strangers.
using GroupToken = std::array<std::byte, 16>;

struct RendezvousOptions {
  int rank = 0;
  uint32_t epoch = 0;
  GroupToken token{};
  std::chrono::milliseconds timeout{10'000};
  const std::atomic<bool>* cancelled = nullptr;
  LinkOptions link{.kind = LinkKind::kTcp};  // the same on every rank
  // Counts rejected calls by ranks of another epoch of this group.
  uint64_t* late_count = nullptr;
};

// One connection that both ends have proved to belong to the group.
struct PeerConnection {
  UniqueFd socket;
  std::optional<LinkKeys> keys;  // none: the connection is not encrypted
};
// connections[r] are the rails to rank r, by rail number, which both ends agree on; empty for this
// rank and where the topology has no link.
using PeerConnections = std::vector<std::vector<PeerConnection>>;

// Whether connections are encrypted: if requested, and between machines unless `plain` is set. One
// of the addresses, the caller's own, may be "0.0.0.0" or "::": the others decide.
bool is_encrypted(const LinkOptions& link, std::span<const TcpAddress> addresses);

// Connects to lower ranks and accepts higher ones. kTimeout names the first missing rank;
// kUnsupported a rank with another version or other options.
Result<PeerConnections> connect_sockets(const TcpListener& listener,
                                        std::span<const TcpAddress> addresses,
                                        const RendezvousOptions& options);

// TCP links over such connections, by rank; null if there is none.
Result<std::vector<std::unique_ptr<Link>>> open_tcp_links(PeerConnections connections,
                                                          const LinkOptions& link, uint32_t epoch);

}  // namespace lockstep
