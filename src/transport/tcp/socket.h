// Shared by the TCP files: non-blocking sockets without signals, numeric addresses, errors.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

#ifdef MSG_NOSIGNAL
inline constexpr int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
#else
inline constexpr int kSendFlags = MSG_DONTWAIT;  // set_up_socket() sets SO_NOSIGPIPE instead
#endif

using AddressInfo = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<AddressInfo> resolve_numeric(const std::string& host, uint16_t port);
Result<UniqueFd> open_tcp_socket(int family);
// Non-blocking, close-on-exec, no SIGPIPE, no delay for small segments.
Status set_up_socket(int fd);

// The numeric addresses of a connection's ends; an IPv4 address that is mapped into an IPv6 one is
// that IPv4 address.
struct SocketEnds {
  std::string own;
  std::string peer;
};
Result<SocketEnds> socket_ends(int fd);

// The call would have blocked, or was interrupted.
bool is_try_later(int error_number);
// "<what>: <the text of errno>"
Error socket_error(ErrorCode code, const std::string& what);

}  // namespace lockstep
