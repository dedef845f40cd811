#include "transport/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>

namespace lockstep {

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
  // These two tune: a connection without them is still right.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
#ifdef SO_NOSIGPIPE
  ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  return Ok{};
}

bool is_try_later(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

Error socket_error(ErrorCode code, const std::string& what) {
  return Error{code, what + ": " + std::strerror(errno)};
}

}  // namespace lockstep
