#include "net/http/http_client.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "base/files/unique_fd.h"
#include "net/serving.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// A listening socket that sends `words` to the first caller and closes; if empty, it stays silent
// until it is destroyed.
class Stranger {
 public:
  explicit Stranger(std::string words) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(listener_.get(), 4) == 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    if (words.empty()) return;
    thread_ = std::thread([this, words = std::move(words)] {
      const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      static_cast<void>(::recv(caller.get(), request, sizeof(request), 0));
      static_cast<void>(::send(caller.get(), words.data(), words.size(), MSG_NOSIGNAL));
    });
  }
  ~Stranger() {
    if (thread_.joinable()) thread_.join();
  }
  HttpCall call() const { return {.host = "127.0.0.1", .port = port_}; }

 private:
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

ErrorCode code_of(const HttpCall& call) {
  const auto answer = call_http(call);
  REQUIRE(!answer.ok());
  MESSAGE(answer.error().message);
  return answer.error().code;
}

}  // namespace

TEST_CASE("a request and its answer arrive whole, whatever the status") {
  Serving server([](const HttpRequest& request, const HttpReply& reply) {
    reply.send({request.method == "POST" ? 404 : 200,
                "text/plain",
                request.method + " " + request.path + "?" + request.query + " " +
                    std::string(request.header("x-name")) + " " + request.body,
                {{"X-Answer", "yes"}}});
  });
  const auto got = call_http({.port = server.port(), .target = "/a/b?c=1"});
  REQUIRE_MESSAGE(got.ok(), got.error().message);
  CHECK(got.value().status == 200);
  CHECK(got.value().header("x-answer") == "yes");
  CHECK(got.value().header("x-other") == "");
  CHECK(got.value().body == "GET /a/b?c=1  ");
  const std::string body(300'000, 'x');
  const auto posted = call_http({.host = "127.0.0.1",
                                 .port = server.port(),
                                 .method = "POST",
                                 .target = "/p",
                                 .headers = {{"X-Name", "some one"}},
                                 .body = body});
  REQUIRE_MESSAGE(posted.ok(), posted.error().message);
  CHECK(posted.value().status == 404);
  CHECK(posted.value().body == "POST /p? some one " + body);
}

TEST_CASE("the Host header is the address as called, with IPv6 in brackets") {
  Serving server([](const HttpRequest& request, const HttpReply& reply) {
    reply.send({200, "text/plain", std::string(request.header("host")), {}});
  });
  const std::string port = ":" + std::to_string(server.port());
  const auto v4 = call_http({.host = "127.0.0.1", .port = server.port()});
  REQUIRE(v4.ok());
  CHECK(v4.value().body == "127.0.0.1" + port);
  const auto v6 = call_http({.host = "::1", .port = server.port()});
  if (!v6.ok()) {  // a machine without IPv6
    CHECK(v6.error().message.find("[::1]" + port) != std::string::npos);
    return;
  }
  CHECK(v6.value().body == "[::1]" + port);
}

TEST_CASE("a streamed answer is assembled") {
  Serving server([](const HttpRequest&, const HttpReply& reply) {
    reply.start(200, "text/plain");
    for (const char* piece : {"one ", "two ", "three"}) reply.write(piece);
    reply.finish();
  });
  const auto answer = call_http({.port = server.port()});
  REQUIRE_MESSAGE(answer.ok(), answer.error().message);
  CHECK(answer.value().body == "one two three");
}

TEST_CASE("too long, late, broken and non-HTTP answers have distinct errors") {
  Serving server([](const HttpRequest&, const HttpReply& reply) {
    reply.send({200, "text/plain", std::string(1000, 'x'), {}});
  });
  CHECK(code_of({.port = server.port(), .body_bytes_max = 999}) == ErrorCode::kExhausted);
  CHECK(call_http({.port = server.port(), .body_bytes_max = 1000}).ok());
  HttpCall silent = Stranger("").call();
  CHECK(code_of(silent) == ErrorCode::kPeerLost);  // its listener is gone
  const Stranger mute("");
  silent = mute.call();
  silent.timeout = milliseconds(50);
  CHECK(code_of(silent) == ErrorCode::kTimeout);
  CHECK(code_of(Stranger("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").call()) ==
        ErrorCode::kPeerLost);
  CHECK(code_of(Stranger("+OK ready\r\n\r\n").call()) == ErrorCode::kCorrupt);
}

TEST_CASE("input that would make two requests is not sent") {
  CHECK(code_of({.target = "/a\r\nX: y"}) == ErrorCode::kInvalidArgument);
  CHECK(code_of({.target = "/a b"}) == ErrorCode::kInvalidArgument);
  CHECK(code_of({.target = "a"}) == ErrorCode::kInvalidArgument);
  CHECK(code_of({.method = "GET /"}) == ErrorCode::kInvalidArgument);
  CHECK(code_of({.headers = {{"A", "b\nC: d"}}}) == ErrorCode::kInvalidArgument);
  CHECK(code_of({.headers = {{"A:", "b"}}}) == ErrorCode::kInvalidArgument);
}

}  // namespace lockstep
