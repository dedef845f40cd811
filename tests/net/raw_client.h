// A minimal client over a blocking socket, so that tests control every byte. Reads have a time-out.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <string>
#include <string_view>

#include "base/files/unique_fd.h"

namespace lockstep {

class RawClient {
 public:
  // `ipv4`: the server's address, in host byte order.
  explicit RawClient(uint16_t port, int receive_buffer_bytes = 0, uint32_t ipv4 = INADDR_LOOPBACK) {
    fd_.reset(::socket(AF_INET, SOCK_STREAM, 0));
    const timeval timeout{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                   sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(ipv4);
    is_connected_ =
        ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool is_connected() const { return is_connected_; }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  // Everything up to and including `end`; if `end` never comes, everything until the connection
  // closed.
  std::string read_until(std::string_view end) {
    size_t found;
    while ((found = unread_.find(end)) == std::string::npos) {
      if (!receive()) return std::exchange(unread_, {});
    }
    return take(found + end.size());
  }

  std::string read_exactly(size_t count) {
    while (unread_.size() < count && receive()) continue;
    return take(std::min(count, unread_.size()));
  }

  std::string read_to_end() {
    while (receive()) continue;
    return std::exchange(unread_, {});
  }

  // One reply with Content-Length: head and body.
  std::string read_reply() {
    std::string reply = read_until("\r\n\r\n");
    const size_t field = reply.find("Content-Length: ");
    if (field == std::string::npos) return reply;
    return reply + read_exactly(std::stoul(reply.substr(field + 16)));
  }

  // True once the server has closed the connection and nothing is left to read; false after the
  // time-out.
  bool is_ended() {
    char byte;
    const ssize_t count = ::recv(fd_.get(), &byte, 1, 0);
    return unread_.empty() && (count == 0 || (count < 0 && errno == ECONNRESET));
  }

  void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  void reset() {  // an RST instead of a FIN
    const linger now{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    fd_.reset();
  }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(count));
    return true;
  }
  std::string take(size_t count) {
    std::string taken = unread_.substr(0, count);
    unread_.erase(0, count);
    return taken;
  }

  UniqueFd fd_;
  bool is_connected_ = false;
  std::string unread_;
};

}  // namespace lockstep
