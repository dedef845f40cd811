// A client of kept streams: HTTP/1.0, so that the bytes of a body are the bytes of its events.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "net/raw_client.h"
#include "server/served.h"

namespace lockstep {

inline std::string stream_request(std::string_view method, std::string_view path,
                                  std::string_view headers, std::string_view body = "") {
  return std::string(method) + " " + std::string(path) + " HTTP/1.0\r\nHost: localhost\r\n" +
         std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

class StreamClient {
 public:
  StreamClient(uint16_t port, std::string_view method, std::string_view path,
               std::string_view headers = "", std::string_view body = "", int receive_buffer = 0)
      : client_(port, receive_buffer) {
    client_.send(stream_request(method, path, headers, body));
  }

  // Once it has come.
  const std::string& head() {
    if (head_.empty()) head_ = client_.read_until("\r\n\r\n");
    return head_;
  }
  int status() { return std::stoi(head().substr(9, 3)); }
  std::string id() {
    const std::string name = "X-Lockstep-Stream: ";
    const size_t at = head().find(name);
    REQUIRE(at != std::string::npos);
    return head().substr(at + name.size(), head().find("\r\n", at) - at - name.size());
  }
  // The bytes of the next `count` events and comments.
  std::string read(size_t count) {
    head();
    std::string bytes;
    for (size_t i = 0; i < count; ++i) bytes += client_.read_until("\n\n");
    return bytes;
  }
  std::string read_to_end() {
    head();
    return client_.read_to_end();
  }
  void close() { client_.close(); }

 private:
  RawClient client_;
  std::string head_;
};

// The data of numbered events, whose numbers must be `from`, `from` + 1...; comments are left out.
inline std::vector<std::string> numbered_data(std::string_view bytes, uint64_t from = 0) {
  std::vector<std::string> data;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find("\n\n", begin);
    REQUIRE(end != std::string_view::npos);
    const std::string_view event = bytes.substr(begin, end - begin);
    begin = end + 2;
    if (event.starts_with(":")) continue;
    const std::string head = "id: " + std::to_string(from + data.size()) + "\ndata: ";
    REQUIRE_MESSAGE(event.starts_with(head), std::string(event));
    data.emplace_back(event.substr(head.size()));
  }
  return data;
}

}  // namespace lockstep
