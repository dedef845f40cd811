// A backend that answers a POST with any bytes that a test wants, and is otherwise healthy. It runs
// on its own thread for the duration of a test and serves one connection at a time.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/files/unique_fd.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

class OddBackend {
 public:
  // `ends`: the connection is closed after the words; otherwise it stays open until the other side
  // closes it.
  explicit OddBackend(std::string words, bool ends = true)
      : words_(std::move(words)), ends_(ends), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OddBackend() {
    is_ending_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  NetAddress address() const { return {"127.0.0.1", port_}; }

 private:
  static std::string whole(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static void send(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  void serve() {
    while (!is_ending_) {
      const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
      if (caller.get() < 0) return;
      char bytes[4096];
      const ssize_t count = ::recv(caller.get(), bytes, sizeof bytes, 0);
      const std::string request(bytes, static_cast<size_t>(count > 0 ? count : 0));
      if (request.starts_with("GET /health")) {
        send(caller.get(), whole("{}"));
      } else if (request.starts_with("GET ")) {
        send(caller.get(), whole(R"({"object":"list","data":[{"id":"m","object":"model"}]})"));
      } else {
        send(caller.get(), words_);
        while (!ends_ && ::recv(caller.get(), bytes, sizeof bytes, 0) > 0) continue;
      }
    }
  }

  const std::string words_;
  const bool ends_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace lockstep
