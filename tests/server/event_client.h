// A client of GET /cluster/events: a stream of server-sent events over a real connection.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "server/served.h"

namespace lockstep {

class EventClient {
 public:
  struct Event {
    std::string name;  // empty: a comment, or the end of the stream
    std::string data;  // JSON
    Json json() const {
      auto parsed = parse_json(data);
      REQUIRE_MESSAGE(parsed.ok(), data);
      return parsed.value();
    }
  };

  // `headers` end with line ends.
  explicit EventClient(uint16_t port, const std::string& headers = "", int receive_buffer_bytes = 0)
      : client_(port, receive_buffer_bytes) {
    client_.send("GET /cluster/events HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }

  // The head of the answer, once.
  std::string head() {
    has_head_ = true;
    return client_.read_until("\r\n\r\n");
  }
  // Reads the head, if nobody has, and the next event.
  Event next() {
    if (!has_head_) head();
    size_t end;
    while ((end = text_.find("\n\n")) == std::string::npos) {
      if (!read_chunk()) return {};
    }
    const std::string event = text_.substr(0, end);
    text_.erase(0, end + 2);
    if (!event.starts_with("event: ")) return {};
    const size_t line = event.find("\ndata: ");
    REQUIRE(line != std::string::npos);
    return {event.substr(7, line - 7), event.substr(line + 7)};
  }
  // The next event of this name; the test fails at another one, but for meters.
  Event next(std::string_view name) {
    Event event = next();
    while (event.name == "meters" && name != "meters") event = next();
    const std::string told = event.name + " " + event.data;
    REQUIRE_MESSAGE(event.name == name, told);
    return event;
  }
  // The next comment, whatever comes before it.
  bool has_comment() {
    while (true) {
      const Event event = next();
      if (event.name.empty()) return !has_ended_;
    }
  }
  bool has_ended() const { return has_ended_; }
  RawClient& raw() { return client_; }

 private:
  bool read_chunk() {
    const std::string line = client_.read_until("\r\n");
    if (line.empty()) {
      has_ended_ = true;
      return false;
    }
    const size_t size = std::stoul(line, nullptr, 16);
    text_ += client_.read_exactly(size);
    client_.read_exactly(2);
    has_ended_ = size == 0;
    return size > 0;
  }

  RawClient client_;
  bool has_head_ = false;
  bool has_ended_ = false;
  std::string text_;
};

}  // namespace lockstep
