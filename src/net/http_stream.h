// HttpStream: one HTTP/1.1 request to another server whose answer is handed on while it arrives.
// The reader decides about the pace: after each piece nothing is read until resume(), so that the
// server feels the one who reads last. Used by `lockstep router`; call_http (net/http_client.h) is
// the simpler one for a whole answer. net/ is the only folder that sees Asio and Beast: this header
// names neither.
//
// A handle; everything here belongs to the thread of the EventLoop. Destroying it cancels: the
// connection is closed, and no event comes any more. An event may destroy the handle.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace lockstep {

struct HttpStreamLimits {
  std::chrono::milliseconds connect_timeout{3'000};      // the name, and TCP
  std::chrono::milliseconds first_byte_timeout{30'000};  // from then to the head of the answer
  std::chrono::milliseconds silence_max{60'000};         // of the body, while it is read
};

class HttpStream {
 public:
  struct Events {
    // The status and headers; the body is empty. Reading goes on by itself.
    std::function<void(HttpAnswer)> on_head;
    std::function<void(std::string)> on_piece;  // not empty; call resume() for the next
    std::function<void()> on_end;               // the answer was whole
    // In the place of on_end, with the codes of call_http; kPeerLost also where the connection
    // took too long. No event follows.
    std::function<void(Error)> on_failure;
  };

  HttpStream() = default;  // none
  // Events come later, never from in here. `timeout` and `body_bytes_max` of the call do not count.
  static HttpStream start(EventLoop& loop, HttpCall call, const HttpStreamLimits& limits,
                          Events events);
  HttpStream(HttpStream&&) noexcept = default;
  HttpStream& operator=(HttpStream&& other) noexcept;
  ~HttpStream() { cancel(); }

  void resume();
  void cancel();

 private:
  struct Impl;
  explicit HttpStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
