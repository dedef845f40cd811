// HTTP/1.1 server with streaming answers. Hides Asio, which only net/ uses. `Limits::admit` decides
// on a request after its head, before any of its body is read. A handler is called on the event
// loop's thread with a whole request and an HttpReply, which it may keep and use from any thread at
// any later time. A request that violates one of the Limits gets its status (400, 408, 413, 414,
// 431, 503) with a body from `Limits::error_body`. An exception in a handler (out of memory) fails
// only its request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct HttpRequest {
  std::string method;  // "GET", also for HEAD
  std::string path;    // percent-decoded, without query, without a trailing slash (but "/" stays)
  std::string query;   // as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  // The body's share of Limits::bodies_bytes_max, held until this request and its copies are
  // destroyed.
  std::shared_ptr<const void> body_hold;
  std::string address;                // the client's; IPv4-mapped IPv6 as IPv4
  std::string network;                // counts as one client (caller_network.h)
  bool is_from_this_machine = false;  // a loopback address
  bool is_head = false;               // HEAD: the answer's body is not sent
  bool is_proved = false;             // set by Limits::admit: the head proved a secret

  // Empty if there is no such header. `name` in lower case.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The answer to one request. A handle: cheap to copy, any thread. Destroying all copies without an
// answer sends 500.
class HttpReply {
 public:
  struct Impl;
  explicit HttpReply(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  // Properties of the answer, whatever its content.
  struct Terms {
    std::vector<std::pair<std::string, std::string>> headers;  // besides its own
    uint64_t caller = 0;                                       // who sent the request; 0: unknown
    std::string client{};                // the same for people: the name of a key, an address
    std::string route{};                 // the request's path
    std::shared_ptr<const void> permit;  // released after the answer and its handles
  };
  uint64_t caller() const;
  const std::string& client() const;
  const std::string& route() const;

  // The whole answer at once.
  void send(HttpResponse response) const;
  // A streamed answer (chunked): head, pieces, end. `content_type` e.g. "text/event-stream".
  void start(int status, std::string content_type,
             std::vector<std::pair<std::string, std::string>> headers = {}) const;
  void write(std::string piece) const;
  // Calls `on_taken` on the loop's thread once the socket has accepted everything written so far;
  // never if the client disconnects first. For writers that prefer to wait rather than exceed
  // unsent_bytes_max: one piece at a time.
  void write(std::string piece, std::function<void()> on_taken) const;
  void finish() const;
  // False once the client has disconnected, or reads so slowly that Limits::unsent_bytes_max was
  // exceeded.
  bool is_open() const;
  // Called once, on the loop's thread, when the client disconnects before the answer is complete;
  // at once if it already has. Several callbacks are called in the order of registration.
  void on_disconnect(std::function<void()> callback) const;

 private:
  std::shared_ptr<Impl> impl_;
};

// The decision on a request, made from its head.
struct HttpAdmission {
  // Sent at once instead of calling the handler; an announced body is not read, and the connection
  // then closes.
  std::optional<HttpResponse> answer;
  HttpReply::Terms terms;  // of the answer, from admit or the handler
  // If lower than the server's limit.
  size_t body_bytes_max = std::numeric_limits<size_t>::max();
  // May use the reserved memory for bodies and answers.
  bool is_preferred = false;
  // A short request about the server itself: served even if connections_max is reached.
  bool is_control = false;
};

class HttpServer {
 public:
  struct Limits {
    size_t header_bytes_max = 32 << 10;  // as received, with the first line
    size_t header_lines_max = 128;
    size_t body_bytes_max = 16 << 20;
    size_t bodies_bytes_max = 256 << 20;   // of all requests being read or waiting, in total
    size_t body_bytes_free = 64 << 10;     // of each, not counted in the total
    size_t answers_bytes_max = 256 << 20;  // of all answers not read by clients yet, in total
    size_t answer_bytes_free = 64 << 10;   // of each, not counted in the total
    // For both totals: the part reserved for preferred callers, and the limit of one caller (but
    // always one whole body).
    int reserved_percent = 25;
    int of_caller_percent = 50;
    size_t unsent_bytes_max = 4 << 20;  // of one slow reader of a stream
    int connections_max = 1024;
    int connections_of_address_max = 512;  // per other machine or /64; not for this machine
    // Beyond connections_max: from this machine, only for control. The oldest one without a request
    // in progress is closed for the next, so that they cannot all be occupied.
    int connections_reserved = 16;
    std::chrono::milliseconds header_timeout{
        10'000};  // from the first byte of a request; x6 for an idle connection
    std::chrono::milliseconds body_timeout{60'000};  // also for a stalled reply
    std::chrono::milliseconds drain_timeout{5'000};  // for replies in progress after stop()
    // The body of an error found by the server itself: (status, sentence, path if known) -> JSON
    // text.
    std::function<std::string(int, std::string_view, std::string_view)> error_body;
    // Called with the head, whose body is empty, on the loop's thread. The handler sees its changes
    // to the request. None: admits everything, and all callers are preferred.
    std::function<HttpAdmission(HttpRequest&)> admit;
  };
  using Handler = std::function<void(HttpRequest, HttpReply)>;

  // Binds every address of `host` ("localhost" binds 127.0.0.1 and ::1, if they exist); port 0
  // picks one.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& host, uint16_t port,
                                                    Limits limits, Handler handler);
  ~HttpServer();
  uint16_t port() const;
  // Serves on the calling thread until one of the following, which any thread may call.
  void run();
  // Accepts no more connections; replies in progress have Limits::drain_timeout to end.
  void stop();
  // From now on requests get 503 with Retry-After. run() returns once those in progress are
  // answered, or after `limit`.
  void drain(std::chrono::milliseconds limit);
  // Closes every connection.
  void stop_now();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
