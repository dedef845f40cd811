#include "transport/tcp/socket_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "transport/frame.h"
#include "transport/tcp/socket.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAtExchangeCancelled{20};

Error connection_error(int peer, int error_number) {
  const std::string what = std::string("the connection ended while links were set up: ") +
                           (error_number == 0 ? "closed" : std::strerror(error_number));
  return peer_error(ErrorCode::kPeerLost, peer, what.c_str());
}

}  // namespace

Status exchange_bytes(int socket, std::span<const std::byte> out, std::span<std::byte> in,
                      const ExchangeLimits& limits) {
  while (!out.empty() || !in.empty()) {
    if (limits.cancelled && limits.cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "setting links up was cancelled"};
    }
    const auto left =
        std::chrono::ceil<milliseconds>(limits.deadline - std::chrono::steady_clock::now());
    if (left <= milliseconds{0}) {
      return peer_error(ErrorCode::kTimeout, limits.peer, "no answer while links were set up");
    }
    const short events =
        static_cast<short>((out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN));
    pollfd entry{socket, events, 0};
    ::poll(&entry, 1, static_cast<int>(std::min(left, kLookAtExchangeCancelled).count()));
    if (!out.empty()) {
      const ssize_t sent = ::send(socket, out.data(), out.size(), kSendFlags);
      if (sent < 0 && !is_try_later(errno)) return connection_error(limits.peer, errno);
      if (sent > 0) out = out.subspan(static_cast<size_t>(sent));
    }
    if (!in.empty()) {
      const ssize_t got = ::recv(socket, in.data(), in.size(), MSG_DONTWAIT);
      if (got == 0) return connection_error(limits.peer, 0);
      if (got < 0 && !is_try_later(errno)) return connection_error(limits.peer, errno);
      if (got > 0) in = in.subspan(static_cast<size_t>(got));
    }
  }
  return Ok{};
}

}  // namespace lockstep
