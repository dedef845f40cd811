#include "transport/tcp/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace lockstep {
namespace {

// BBR, the default of some servers, paces segments to its estimated rate, which is much too low for
// bursts: a sum of 1 MiB over loopback takes 1.8 times as long as with Reno. Any process may choose
// Reno.
void stop_pacing(int fd) {
#ifdef TCP_CONGESTION
  char name[16] = {};
  socklen_t length = sizeof(name) - 1;
  const bool is_known = ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0;
  if (!is_known || !std::string_view(name).starts_with("bbr")) return;
  for (const std::string_view other : {"cubic", "reno"}) {
    const auto size = static_cast<socklen_t>(other.size());
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, other.data(), size) == 0) return;
  }
#else
  static_cast<void>(fd);
#endif
}

std::string host_text(const sockaddr_storage& address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text, sizeof(text),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  const std::string_view host(text);
  constexpr std::string_view kMapped = "::ffff:";
  const bool is_ipv4 = host.starts_with(kMapped) && host.find('.') != std::string_view::npos;
  return std::string(is_ipv4 ? host.substr(kMapped.size()) : host);
}

}  // namespace

Result<AddressInfo> resolve_numeric(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return Error{ErrorCode::kInvalidArgument, "'" + host + "' is not a numeric IP address"};
  }
  return AddressInfo(found, ::freeaddrinfo);
}

Result<UniqueFd> open_tcp_socket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM, 0));
  if (!fd.is_open()) return socket_error(ErrorCode::kInternal, "opening a socket failed");
  TRY(set_up_socket(fd.get()));
  return fd;
}

Status set_up_socket(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return socket_error(ErrorCode::kInternal, "setting up a socket failed");
  }
  const int on = 1;
  // The rest is tuning: a connection also works without it.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  stop_pacing(fd);
#ifdef SO_NOSIGPIPE
  ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  return Ok{};
}

Result<SocketEnds> socket_ends(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0) {
    return socket_error(ErrorCode::kPeerLost, "asking for the addresses of a connection failed");
  }
  return SocketEnds{host_text(own, own_length), host_text(peer, peer_length)};
}

bool is_try_later(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

Error socket_error(ErrorCode code, const std::string& what) {
  return Error{code, what + ": " + std::strerror(errno)};
}

}  // namespace lockstep
