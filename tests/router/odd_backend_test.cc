// Whatever a backend sends, the router answers its client and survives.
#include "router/odd_backend.h"

#include <utility>
#include <vector>

#include "net/raw_client.h"
#include "router/routed.h"

namespace lockstep {
namespace {

RouterOptions options_for(const OddBackend& backend) {
  RouterOptions options;
  options.backends = {backend.address()};
  return options;
}

// The client's answer if the backend sends `words`.
HttpAnswer answer_to(const std::string& words, bool ends = true) {
  const OddBackend backend(words, ends);
  return Routed(options_for(backend)).post(kAny);
}

std::string answer_text(const std::string& status) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody";
}

}  // namespace

TEST_CASE("interim heads are skipped, and the answer after them counts") {
  for (const char* interim :
       {"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "HTTP/1.1 100\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"}) {
    CAPTURE(interim);
    const HttpAnswer answer = answer_to(interim + answer_text("200 OK"));
    CHECK(answer.status == 200);
    CHECK(answer.body == "body");
    CHECK(answer.header("link").empty());
  }
}

TEST_CASE("a status that HTTP does not have is 502, and so is a change of protocol") {
  for (const char* status : {"600 x", "999 x", "099 x", "000 x", "101 Switching Protocols"}) {
    CAPTURE(status);
    const HttpAnswer answer = answer_to(answer_text(status));
    CHECK(answer.status == 502);
    CHECK(answer.body.find("backend_failed") != std::string::npos);
  }
  CHECK(answer_to(answer_text("599 x")).status == 599);
  CHECK(answer_to(answer_text("299 x")).status == 299);
}

TEST_CASE("an answer that is not HTTP, too long, or of ambiguous length is 502") {
  std::string heads;
  for (int i = 0; i < 20; ++i) heads += "HTTP/1.1 100 Continue\r\n\r\n";
  std::string lines = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 2000; ++i) lines += "X: y\r\n";
  const std::pair<const char*, std::string> kinds[] = {
      {"no HTTP", "+OK ready\r\n\r\n"},
      {"another version", "HTTP/2.0 200 OK\r\n\r\n"},
      {"no status", "HTTP/1.1 abc OK\r\n\r\n"},
      {"endless interim heads", heads},
      {"many lines", lines + "\r\n"},
      {"a long line", "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'y') + "\r\n\r\n"},
      {"folded", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"},
      {"NUL", std::string("HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", 25)},
      {"bare line feed", "HTTP/1.1 200 OK\nX: y\n\n"},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 3\r\n\r\nbody"},
      {"length and chunks",
       "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nbody"},
      {"other encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nbody"},
      {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nbody"},
      {"long chunk",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbody\r\n0\r\n\r\n"}};
  for (const auto& [name, words] : kinds) {
    CAPTURE(name);
    const HttpAnswer answer = answer_to(words);
    CHECK(answer.status == 502);
    CHECK(answer.body.find("backend_failed") != std::string::npos);
  }
}

TEST_CASE("an answer that ends early or is slow to come is an error with its own status") {
  CHECK(answer_to("").status == 503);
  CHECK(answer_to("HTTP/1.1 200").status == 503);
  CHECK(answer_to("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").status == 503);
  CHECK(answer_to("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n").status ==
        503);
  const auto timed = [](const std::string& words, const RelayLimits& limits) {
    const OddBackend backend(words, false);
    RouterOptions options = options_for(backend);
    options.relay = limits;
    options.relay.attempts_max = 1;
    return Routed(std::move(options)).post(kAny).status;
  };
  const std::chrono::milliseconds soon(50);
  CHECK(timed("HTTP/1.1 100 Continue\r\n\r\n", {.whole_first_byte_timeout = soon}) == 504);
  CHECK(timed("HTTP/1.1 200 OK\r\n\r\nhalf", {.silence_max = soon}) == 504);
  CHECK(timed("HTTP/1.1 200 OK\r\n\r\nhalf", {.whole_timeout = soon}) == 504);
}

TEST_CASE("an answer without a length is forwarded to its end, and one without a body has none") {
  const HttpAnswer answer = answer_to("HTTP/1.0 200 OK\r\nContent-Type: text/x\r\n\r\nto the end");
  CHECK(answer.status == 200);
  CHECK(answer.body == "to the end");
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    for (const char* type : {"text/plain", "text/event-stream"}) {
      CAPTURE(status);
      const HttpAnswer empty =
          answer_to("HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + type + "\r\n\r\n");
      CHECK(empty.status == std::stoi(status));
      CHECK(empty.body.empty());
    }
  }
}

TEST_CASE("headers listed in an answer's Connection header are not forwarded") {
  const HttpAnswer answer = answer_to(
      "HTTP/1.1 200 OK\r\nConnection: close, X-Own\r\nX-Own: 1\r\nX-Other: 2\r\nContent-Length: "
      "0\r\n\r\n");
  CHECK(answer.status == 200);
  CHECK(answer.header("x-own").empty());
  CHECK(answer.header("x-other") == "2");
}

TEST_CASE("a stream that breaks its framing ends with an error event") {
  const OddBackend backend(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      "9\r\ndata: 1\n\n\r\nnonsense\r\n");
  const Routed routed(options_for(backend));
  const HttpAnswer answer = routed.post(R"({"model": "m", "stream": true, "prompt": "a"})");
  CHECK(answer.status == 200);
  CHECK(answer.body.starts_with("data: 1\n\n"));
  CHECK(answer.body.find("backend_lost") != std::string::npos);
  CHECK(routed.counter("broken") == 1);
}

TEST_CASE("the router refuses unknown routes before the body arrives") {
  const OddBackend backend(answer_text("200 OK"));
  const Routed routed(options_for(backend));
  RawClient client(routed.port());
  client.send("POST /cluster/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n");
  CHECK(client.read_reply().starts_with("HTTP/1.1 405 "));
}

}  // namespace lockstep
