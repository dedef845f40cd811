#include "transport/handshake.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "transport/socket.h"

namespace lockstep {

bool is_of_group(const Hello& hello, const RendezvousOptions& options) {
  // All bytes of the token are looked at, so that the time taken does not tell how many were right.
  unsigned difference = 0;
  for (size_t i = 0; i < hello.token.size(); ++i) {
    difference |= std::to_integer<unsigned>(hello.token[i] ^ options.token[i]);
  }
  return hello.magic == Hello::kMagic && hello.version == Hello::kVersion && difference == 0 &&
         hello.epoch == options.epoch && hello.to == static_cast<uint32_t>(options.rank);
}

Result<bool> HelloReader::read(int fd) {
  auto* bytes = reinterpret_cast<std::byte*>(&hello_);
  const ssize_t received = ::recv(fd, bytes + received_, sizeof(hello_) - received_, MSG_DONTWAIT);
  if (received == 0) return Error{ErrorCode::kPeerLost, "the connection was closed"};
  if (received < 0) {
    if (is_try_later(errno)) return false;
    return socket_error(ErrorCode::kPeerLost, "the connection ended");
  }
  received_ += static_cast<size_t>(received);
  return received_ == sizeof(hello_);
}

bool send_hello(int fd, const Hello& hello) {
  return ::send(fd, &hello, sizeof(hello), kSendFlags) == static_cast<ssize_t>(sizeof(hello));
}

Result<UniqueFd> start_connect(const TcpAddress& address) {
  auto info = TRY(resolve_numeric(address.host, address.port));
  UniqueFd fd = TRY(open_tcp_socket(info->ai_family));
  if (::connect(fd.get(), info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return socket_error(ErrorCode::kPeerLost, "connecting failed");
  }
  return fd;
}

int connect_error(int fd) {
  int error_number = 0;
  socklen_t length = sizeof(error_number);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &length) != 0) return errno;
  return error_number;
}

}  // namespace lockstep
