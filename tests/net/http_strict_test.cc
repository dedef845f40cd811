// HTTP/1.1 requests that the server refuses: those that two programs could read in two ways, and
// those that grow.
#include <doctest/doctest.h>

#include <string>

#include "net/http/http_request_parser.h"
#include "net/raw_client.h"
#include "net/running.h"

namespace lockstep {
namespace {

using State = HttpRequestParser::State;
constexpr HttpHeadLimits kLimits = {.bytes_max = 32 << 10, .fields_max = 128};
constexpr size_t kBodyBytesMax = 1 << 20;

// "ok" with the parsed request, or the status and the sentence of the refusal.
std::string verdict(const std::string& bytes) {
  HttpRequestParser parser(kLimits);
  std::string unparsed = bytes;
  unparsed.erase(0, parser.feed(unparsed));
  if (parser.state() == State::kHead) {
    parser.accept(kBodyBytesMax);
    unparsed.erase(0, parser.feed(unparsed));
  }
  if (parser.state() == State::kFailed) {
    return std::to_string(parser.failure().status) + " " + parser.failure().message;
  }
  if (parser.state() != State::kDone) return "unfinished";
  const HttpRequest request = parser.take();
  return "ok " + request.method + " " + request.path + " " + request.body;
}

bool is_refused(const std::string& bytes, std::string_view status, std::string_view words) {
  const std::string said = verdict(bytes);
  CAPTURE(said);
  const bool is_so = said.starts_with(status) && said.find(words) != std::string::npos;
  CHECK(is_so);
  return is_so;
}

std::string with(const std::string& lines) {
  return "POST /a HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n";
}

const std::string kChunked = with("Transfer-Encoding: chunked\r\n");

}  // namespace

TEST_CASE("a header is limited in bytes and in lines") {
  std::string tiny;
  for (int i = 0; i < 9000; ++i) tiny += "X: a\r\n";
  is_refused("GET / HTTP/1.1\r\nHost: h\r\n" + tiny + "\r\n", "431", "more than 128 lines");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "X: " + std::string(400, 'a') + "\r\n";
  is_refused("GET / HTTP/1.1\r\nHost: h\r\n" + wide + "\r\n", "431", "larger than 32768 bytes");
  // The same without any line end.
  is_refused("GET /" + std::string(40'000, 'a'), "431", "larger than 32768 bytes");
  // Exact to the byte.
  const std::string line = "X: ";
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  const size_t room = kLimits.bytes_max - head.size() - line.size() - 4;
  CHECK(verdict(head + line + std::string(room, 'a') + "\r\n\r\n").starts_with("ok"));
  is_refused(head + line + std::string(room + 1, 'a') + "\r\n\r\n", "431", "32768");
}

TEST_CASE("9000 tiny headers are refused by a server, and the next client is served") {
  Running server([](const HttpRequest&, const HttpReply& reply) {
    reply.send({200, "text/plain", "ok", {}});
  });
  std::string tiny = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 9000; ++i) tiny += "X: a\r\n";
  RawClient crowd(server.port());
  crowd.send(tiny + "\r\n");
  CHECK(crowd.read_to_end().starts_with("HTTP/1.1 431 "));
  RawClient next(server.port());
  next.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(next.read_reply().starts_with("HTTP/1.1 200 "));
}

TEST_CASE("there is one Host, and it matches an absolute target") {
  CHECK(verdict("GET /a HTTP/1.1\r\nHost: h\r\n\r\n") == "ok GET /a ");
  CHECK(verdict("GET /a HTTP/1.0\r\n\r\n") == "ok GET /a ");
  CHECK(verdict("GET /a HTTP/1.0\r\nHost: h\r\n\r\n") == "ok GET /a ");
  is_refused("GET /a HTTP/1.1\r\n\r\n", "400", "exactly one Host");
  is_refused("GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400", "exactly one Host");
  is_refused("GET /a HTTP/1.0\r\nHost: h\r\nhost: evil\r\n\r\n", "400", "one Host");
  CHECK(verdict("GET http://H:1/a HTTP/1.1\r\nHost: h:1\r\n\r\n") == "ok GET /a ");
  is_refused("GET http://evil/a HTTP/1.1\r\nHost: localhost\r\n\r\n", "400", "not the host");
  is_refused("GET http://evil/a HTTP/1.0\r\n\r\n", "400", "not the host");
}

TEST_CASE("a target is a path: OPTIONS *, an authority, NUL and broken escapes are refused") {
  is_refused("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "400", "slash");
  is_refused("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "400", "slash");
  is_refused("GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "400", "NUL");
  is_refused("GET /%2 HTTP/1.1\r\nHost: h\r\n\r\n", "400", "hexadecimal");
  // An escaped slash is a slash for everything that reads the path.
  CHECK(verdict("GET /v1%2Fmodels/a%2fb HTTP/1.1\r\nHost: h\r\n\r\n") == "ok GET /v1/models/a/b ");
  CHECK(verdict("GET /a/%2e%2e/b HTTP/1.1\r\nHost: h\r\n\r\n") == "ok GET /b ");
}

TEST_CASE("ambiguous lines are refused") {
  is_refused(with("X: a\r\n b\r\n"), "400", "folded");
  is_refused(with("X: a\r\n\tb\r\n"), "400", "folded");
  is_refused("GET / HTTP/1.1\r\n Host: h\r\n\r\n", "400", "folded");
  is_refused(with("X : a\r\n"), "400", "colon");
  is_refused(with("X\t: a\r\n"), "400", "colon");
  is_refused(with(": a\r\n"), "400", "colon");
  is_refused(with("X(: a\r\n"), "400", "colon");
  is_refused(with("no colon\r\n"), "400", "no colon");
  is_refused(with("X: a\rb\r\n"), "400", "control character");
  is_refused(with(std::string("X: a\0b\r\n", 8)), "400", "control character");
  is_refused(with("X: a\x1b\r\n"), "400", "control character");
  is_refused("GET / HTTP/1.1\nHost: h\n\n", "400", "CR LF");
  is_refused(with("X: a\n"), "400", "CR LF");
  CHECK(verdict(with("X:a\r\nY: \t b \t\r\nZ:\r\n")) == "ok POST /a ");
}

TEST_CASE("a first line has a word, a target and a version, with one space between them") {
  for (const char* line :
       {"GET", "GET /", "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", "GE(T / HTTP/1.1",
        "GET /\t HTTP/1.1", "GET / HTTP/2.0", "GET / http/1.1", "GET / HTTP/1.10",
        "G\xC3\xA9T / HTTP/1.1", "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABC / HTTP/1.1"}) {
    CAPTURE(line);
    CHECK(verdict(std::string(line) + "\r\nHost: h\r\n\r\n").starts_with("400 "));
  }
  // Bytes that are not HTTP are refused at the first one: a TLS greeting never ends a line.
  CHECK(verdict("\x16\x03\x01").starts_with("400 "));
}

TEST_CASE("a body has one length") {
  CHECK(verdict(with("Content-Length: 2\r\n") + "ab") == "ok POST /a ab");
  is_refused(with("Content-Length: 2\r\nContent-Length: 2\r\n") + "ab", "400", "Content-Length");
  is_refused(with("Content-Length: 2, 2\r\n") + "ab", "400", "Content-Length");
  for (const char* length : {"+2", "-2", "0x2", "2 2", "", "99999999999999999999"}) {
    is_refused(with("Content-Length: " + std::string(length) + "\r\n"), "400", "Content-Length");
  }
  is_refused(with("Content-Length: 999999999999999999\r\n"), "413", "1048576");
  is_refused(with("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), "400", "both");
  is_refused(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "400",
             "chunked");
  is_refused(with("Transfer-Encoding: gzip, chunked\r\n"), "400", "chunked");
  is_refused("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400", "HTTP/1.1");
}

TEST_CASE("chunks are strict, and their extensions and trailers have limits") {
  CHECK(verdict(kChunked + "2\r\nab\r\n01;x=\"y\"\r\nc\r\n0\r\nT: u\r\n\r\n") == "ok POST /a abc");
  for (const char* body :
       {"g\r\n", "-1\r\n", "\r\n", ";x\r\n", "2 x\r\nab\r\n0\r\n\r\n", "2\nab", "2\r\nabc\r\n",
        "2\r\nab\n", "fffffffffffffffff\r\n", "0\r\nX : y\r\n\r\n", "0\r\nX: y\r\n z\r\n\r\n"}) {
    CAPTURE(body);
    CHECK(verdict(kChunked + body).starts_with("400 "));
  }
  is_refused(kChunked + "1;" + std::string(300, 'x') + "\r\na\r\n0\r\n\r\n", "400", "too long");
  is_refused(kChunked + "1;" + std::string(300, 'x'), "400", "too long");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "1;" + std::string(200, 'x') + "\r\na\r\n";
  is_refused(kChunked + many + "0\r\n\r\n", "400", "extensions");
  std::string trailer;
  for (int i = 0; i < 40; ++i) trailer += "X: y\r\n";
  is_refused(kChunked + "0\r\n" + trailer + "\r\n", "431", "trailer");
  is_refused(kChunked + "0\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "431", "trailer");
  is_refused(kChunked + "100001\r\n", "413", "1048576");
}

}  // namespace lockstep
