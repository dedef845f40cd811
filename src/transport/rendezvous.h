// How the ranks of a group find each other over TCP: each listens on a port of its own, the
// addresses are spread by whoever forms the group, and each pair makes one connection with a
// handshake. Strangers and ranks of another group or epoch are turned away and do no harm. Blocks
// until its deadline; for set-up only.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/link.h"

namespace lockstep {

struct TcpAddress {
  std::string host;  // numeric, IPv4 or IPv6: a name look-up has no deadline
  uint16_t port = 0;
};

class TcpListener {
 public:
  // Listens on a free port of `host`.
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

// A secret of the group, made anew for each: it tells its ranks from strangers.
using GroupToken = std::array<std::byte, 16>;

struct RendezvousOptions {
  int rank = 0;
  uint32_t epoch = 0;
  GroupToken token{};
  std::chrono::milliseconds timeout{10'000};
  const std::atomic<bool>* cancelled = nullptr;
};

// Links to all ranks, by rank; null for the own one. Connects to lower ranks and is connected to by
// higher ones. kTimeout names the first rank that is missing.
Result<std::vector<std::unique_ptr<Link>>> connect_ranks(const TcpListener& listener,
                                                         std::span<const TcpAddress> addresses,
                                                         const RendezvousOptions& options);

}  // namespace lockstep
