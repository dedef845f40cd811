#include "net/http/http_target.h"

#include <doctest/doctest.h>

#include "net/http/http_request_parser.h"

namespace lockstep {
namespace {

std::string path_of(std::string_view target) {
  auto parsed = parse_target(target);
  return parsed.ok() ? parsed.value().path : "error";
}

}  // namespace

TEST_CASE("a target is decoded and normalised") {
  CHECK(path_of("/v1/models") == "/v1/models");
  CHECK(path_of("/v1/models/") == "/v1/models");
  CHECK(path_of("/v1//models?") == "/v1/models");
  CHECK(path_of("/") == "/");
  CHECK(path_of("/a%2Fb%20%C3%A9") == "/a/b \xC3\xA9");
  CHECK(path_of("/a/./b/../c") == "/a/c");
  CHECK(path_of("/%2e%2e/..//etc") == "/etc");
  CHECK(path_of("http://host:1/x/y?q") == "/x/y");
  CHECK(path_of("http://host") == "/");
  CHECK(path_of("http://host?q") == "/");
  CHECK(parse_target("http://Host:1/x").value().authority == "Host:1");
  CHECK(parse_target("/x").value().authority.empty());
  CHECK(parse_target("/a?b=%zz&c").value().query == "b=%zz&c");
}

TEST_CASE("targets that no honest client sends are refused") {
  for (const char* target :
       {"", "?q", "*", "http://", "http:///x", "a/b", "host:80", "/%", "/%4", "/%g0", "/%00",
        "/%80", "/%C3", "/%ED%A0%80", "/%C0%AF", "/%F4%90%80%80"}) {
    CAPTURE(target);
    CHECK(path_of(target) == "error");
  }
}

TEST_CASE("a request in pieces of any size gives the same request") {
  const std::string bytes =
      "POST /a%20b?c HTTP/1.1\r\nHost: h\r\nX-Mixed-Case: V a \r\nTransfer-Encoding: "
      "chunked\r\n\r\n"
      "5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\nTrailer: t\r\n\r\nGET /next";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HttpRequestParser parser({.bytes_max = 4096, .fields_max = 8});
    std::string unparsed;
    for (size_t at = 0; at < bytes.size(); at += step) {
      unparsed += bytes.substr(at, step);
      unparsed.erase(0, parser.feed(unparsed));
      if (parser.state() != HttpRequestParser::State::kHead) continue;
      CHECK(parser.head().path == "/a b");
      CHECK(parser.has_body());
      parser.accept(100);
      unparsed.erase(0, parser.feed(unparsed));
    }
    CAPTURE(step);
    REQUIRE(parser.state() == HttpRequestParser::State::kDone);
    CHECK(unparsed == "GET /next");
    CHECK(parser.keeps_alive());
    const HttpRequest request = parser.take();
    CHECK(request.method == "POST");
    CHECK(request.path == "/a b");
    CHECK(request.query == "c");
    CHECK(request.header("x-mixed-case") == "V a");
    CHECK(request.header("missing") == "");
    CHECK(request.body == "hello!");
  }
}

}  // namespace lockstep
