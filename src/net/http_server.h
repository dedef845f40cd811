// HTTP/1.1 server with streaming answers. net/ is the only folder that sees Asio and Beast: this
// header names neither. A handler is called on the event loop's thread with a whole request and a
// Reply, and may keep the Reply and use it from any thread, at any later time. Limits and time-outs
// are named in Limits; a request that breaks one gets its status (400, 408, 413, 414, 431, 503) in
// the shape that `Limits::error_body` makes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without query, without a trailing slash (but "/" stays)
  std::string query;   // as sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  // What the body takes of Limits::bodies_bytes_max, until this request and its copies are gone.
  std::shared_ptr<const void> body_hold;
  std::string address;                // the client's; IPv4 as such, also where it came in as IPv6
  bool is_from_this_machine = false;  // the client's address is a loopback one

  // Empty if there is no such header. `name` in lower case.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The answer to one request. A handle: cheap to copy, any thread. Dropping all copies without an
// answer sends 500.
class HttpReply {
 public:
  struct Impl;
  explicit HttpReply(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  // What holds for the answer, whatever it becomes.
  struct Terms {
    std::vector<std::pair<std::string, std::string>> headers;  // beside its own
    uint64_t caller = 0;                 // whose request it is; 0: nobody in particular
    std::shared_ptr<const void> permit;  // let go of when the answer is over and its handles gone
  };
  // By the handler, once, before it hands the reply to anybody.
  void set_terms(Terms terms) const;
  uint64_t caller() const;

  // The whole answer at once.
  void send(HttpResponse response) const;
  // A streamed answer (chunked): head, pieces, end. `content_type` e.g. "text/event-stream".
  void start(int status, std::string content_type,
             std::vector<std::pair<std::string, std::string>> headers = {}) const;
  void write(std::string piece) const;
  // `on_taken` is called on the loop's thread once the socket has taken all that was written so
  // far; never if the client goes before. For who would rather wait than exceed unsent_bytes_max:
  // one piece at a time.
  void write(std::string piece, std::function<void()> on_taken) const;
  void finish() const;
  // False once the client has gone, or reads so slowly that Limits::unsent_bytes_max was exceeded.
  bool is_open() const;
  // Called once, on the loop's thread, when the client disconnects before the answer is complete;
  // at once if it already has.
  void on_disconnect(std::function<void()> callback) const;

 private:
  std::shared_ptr<Impl> impl_;
};

class HttpServer {
 public:
  struct Limits {
    size_t header_bytes_max = 32 << 10;
    size_t body_bytes_max = 16 << 20;
    size_t bodies_bytes_max = 256 << 20;  // of all requests that are read or waiting, together
    size_t body_bytes_free = 64 << 10;    // of each, which do not count there
    size_t unsent_bytes_max = 4 << 20;    // of one slow reader
    int connections_max = 1024;
    int connections_of_address_max = 512;  // of another machine; this one's own have no such limit
    std::chrono::milliseconds header_timeout{
        10'000};  // from the first byte of a request, and for an idle connection x6
    std::chrono::milliseconds body_timeout{60'000};  // also without progress while a reply is sent
    std::chrono::milliseconds drain_timeout{5'000};  // that stop() gives to replies under way
    // The body of an error that the server itself finds: (status, sentence, path, as far as it is
    // known) -> JSON text.
    std::function<std::string(int, std::string_view, std::string_view)> error_body;
  };
  using Handler = std::function<void(HttpRequest, HttpReply)>;

  // Binds every address of `host` ("localhost" binds 127.0.0.1 and ::1 where they exist); port 0
  // picks one.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& host, uint16_t port,
                                                    Limits limits, Handler handler);
  ~HttpServer();
  uint16_t port() const;
  // Serves on the calling thread until one of the following, which any thread may call.
  void run();
  // Takes no more connections; replies under way have Limits::drain_timeout to end.
  void stop();
  // From now on requests get 503 with Retry-After. run() returns once those under way are answered,
  // or when `limit` has passed.
  void drain(std::chrono::milliseconds limit);
  // Closes every connection.
  void stop_now();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
