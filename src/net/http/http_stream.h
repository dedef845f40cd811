// HttpStream: one HTTP/1.1 request to another server, with the answer delivered as it arrives. The
// reader sets the pace: after each piece nothing is read until resume(), so that back-pressure
// reaches the server. Used by `lockstep router`; call_http (net/http/http_client.h) is simpler for
// a whole answer. Hides Asio, which only net/ uses.
//
// A handle; everything here belongs to the thread of the EventLoop. Destroying it cancels: the
// connection is closed, and no more events come. An event may destroy the handle.
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
#include "net/http/http_client.h"

namespace lockstep {

struct HttpStreamLimits {
  std::chrono::milliseconds connect_timeout{3'000};      // the name, and TCP
  std::chrono::milliseconds first_byte_timeout{30'000};  // then, up to the answer's head
  std::chrono::milliseconds silence_max{60'000};         // of the body, while reading
  std::chrono::milliseconds whole_timeout{86'400'000};   // of the whole exchange
};

class HttpStream {
 public:
  struct Events {
    // The status and headers; the body is empty. Reading continues without resume().
    std::function<void(HttpAnswer)> on_head;
    std::function<void(std::string)> on_piece;  // not empty; call resume() for the next
    std::function<void()> on_end;               // the answer is complete
    // Instead of on_end, with the codes of call_http; kPeerLost also if connecting took too long.
    // No event follows.
    std::function<void(Error)> on_failure;
  };

  HttpStream() = default;  // none
  // Events come later, never from inside start(). Ignores `timeout` and `body_bytes_max` of the
  // call.
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
