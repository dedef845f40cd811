// The implementation of HttpReply: the state shared with its connection, with flags that any thread
// may read. Internal to net/.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "net/http/http_server.h"
#include "net/http_loop.h"

namespace lockstep {

class HttpConnection;

// Shared by the handles of one reply and its connection. The atomics publish no other data
// (relaxed).
struct HttpReplyState {
  std::atomic<bool> is_open{true};
  std::atomic<size_t> unsent_bytes{0};  // written by the handler, not yet accepted by the socket
  bool is_lost = false;  // loop's thread: the client disconnected before the answer was complete
};

struct HttpReply::Impl {
  std::shared_ptr<HttpLoop> loop;
  std::weak_ptr<HttpConnection> connection;
  std::shared_ptr<HttpReplyState> state;
  size_t unsent_bytes_max = 0;
  std::atomic<bool> is_complete{false};
  HttpReply::Terms terms;

  ~Impl();
  // Runs `action(connection)` on the loop's thread if this reply is still in progress there.
  template <class Action>
  void post(Action action) const;
};

}  // namespace lockstep
