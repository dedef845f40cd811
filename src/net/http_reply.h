// What stands behind HttpReply: the number of the exchange on a connection, and the flags that any
// thread may read. Internal to net/.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "net/http_loop.h"
#include "net/http_server.h"

namespace lockstep {

class HttpConnection;

// Shared by the handles of one reply and its connection. The atomics publish nothing but themselves
// (relaxed).
struct HttpReplyState {
  std::atomic<bool> is_open{true};
  std::atomic<size_t> unsent_bytes{0};  // written by the handler and not yet taken by the socket
  bool is_lost = false;  // loop's thread: the client went before the answer was complete
};

struct HttpReply::Impl {
  std::shared_ptr<HttpLoop> loop;
  std::weak_ptr<HttpConnection> connection;
  std::shared_ptr<HttpReplyState> state;
  size_t unsent_bytes_max = 0;
  std::atomic<bool> is_complete{false};
  HttpReply::Terms terms;  // set before other threads see this

  ~Impl();
  // Runs `action(connection)` on the loop's thread if this reply is still the one under way there.
  template <class Action>
  void post(Action action) const;
};

}  // namespace lockstep
