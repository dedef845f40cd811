// Relay: forwards one client's request to a backend, and streams the answer back as it arrives.
// While nothing of an answer has been sent to the client, a backend's failure, 429 or 503 makes it
// try the next one. Belongs to the thread of the EventLoop; the client's end may be on any
// (HttpReply).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/event_loop.h"
#include "net/http/http_server.h"
#include "net/http/http_stream.h"
#include "router/backends.h"
#include "router/request_key.h"
#include "router/sse_events.h"

namespace lockstep {

struct RelayLimits {
  size_t attempts_max = 3;  // backends tried for one request
  std::chrono::milliseconds connect_timeout{3'000};
  // Until the head of the answer. An answer that is not streamed is computed first.
  std::chrono::milliseconds stream_first_byte_timeout{60'000};
  std::chrono::milliseconds whole_first_byte_timeout{1'800'000};
  // A node's stream sends an empty delta every 15 s, however long the prompt is.
  std::chrono::milliseconds silence_max{60'000};
  std::chrono::milliseconds whole_timeout{86'400'000};  // of an answer, however slow
  // An answer that is not streamed is held until complete, so that another backend can still be
  // tried; a longer one is sent in pieces. Less than the server's unsent_bytes_max.
  size_t kept_answer_bytes_max = 1 << 20;
};

struct RouterCounters {
  uint64_t requests = 0;
  uint64_t answered = 0;   // completely, whatever the status
  uint64_t retried = 0;    // attempts sent to another backend
  uint64_t failed = 0;     // no backend answered
  uint64_t broken = 0;     // ended in the middle of an answer
  uint64_t cancelled = 0;  // by clients that left
  uint64_t refused = 0;    // the router was full
};

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  struct Context {  // shared by all relays; outlives them
    EventLoop& loop;
    Backends& backends;
    RouterCounters& counters;
    RelayLimits limits;
    std::function<void(const std::shared_ptr<Relay>&)> on_done;
  };

  struct Request {
    HttpCall call;  // without the address
    RequestKey key;
    std::shared_ptr<const void> body_hold;  // HttpRequest::body_hold
  };

  Relay(Context& context, Request request, HttpReply reply);
  ~Relay();
  void start();

 private:
  void try_next();
  void answer_without_backend();
  HttpStream::Events events();
  void on_head(HttpAnswer head);
  void on_piece(std::string piece);
  void on_end();
  void on_failure(const Error& error);
  void begin_answer();
  void write(std::string piece);
  void break_off(const Error& error);
  void cancel();
  void leave_backend();
  void finish();

  Context& context_;
  const Request request_;
  std::optional<HttpReply> reply_;  // empty once done
  std::vector<size_t> tried_;
  std::optional<size_t> backend_;  // has the request
  std::optional<Error> last_error_;
  HttpStream stream_;
  HttpAnswer answer_;  // head, and the body so far if not streamed
  SseEvents sse_;
  bool is_sse_ = false;
  bool is_begun_ = false;  // the client has the head
};

}  // namespace lockstep
