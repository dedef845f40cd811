// The web page and its files over HTTP: caching, compression and the headers that keep it safe.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/files/mapped_file.h"
#include "server/browser/page_routes.h"
#include "server/fake_page.h"
#include "server/served.h"

namespace lockstep {
namespace {

constexpr std::string_view kScriptPath = "/assets/main.1A2B3C4D.js";
constexpr const char* kPolicyLine =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types "
    "svelte-trusted-html\r\n";

std::string page_data(std::string_view name) {
  auto bytes =
      read_small_file(std::string(LOCKSTEP_SOURCE_DIR "/tests/data/page/") + std::string(name));
  REQUIRE(bytes.ok());
  return bytes.value();
}

// A request for a file with more header lines, each ended by \r\n.
Answer ask(Served& server, std::string_view path, std::string_view lines,
           std::string_view method = "GET") {
  return server.exchange(fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\n{}Connection: close\r\n\r\n", method, path, lines));
}

std::string tag_of(const Answer& answer) {
  const size_t at = answer.head.find("ETag: ");
  REQUIRE(at != std::string::npos);
  const size_t begin = at + std::string_view("ETag: ").size();
  return answer.head.substr(begin, answer.head.find("\r\n", at) - begin);
}

struct ServedPage : Served {
  ServedPage() : Served([](ServerOptions& options) { options.page = fake_page(); }) {}
};

void check_safe_headers(const Answer& answer) {
  CHECK(answer.has_header(kPolicyLine));
  CHECK(answer.has_header("X-Content-Type-Options: nosniff\r\n"));
  CHECK(answer.has_header("Referrer-Policy: no-referrer\r\n"));
  CHECK(answer.has_header("Cross-Origin-Opener-Policy: same-origin\r\n"));
}

}  // namespace

TEST_CASE("the page is served with its type and policy, and asked for again each time") {
  ServedPage server;
  const Answer page = server.get("/");
  CHECK(page.status == 200);
  CHECK(page.body == page_data("index.html"));
  CHECK(page.has_header("Content-Type: text/html; charset=utf-8\r\n"));
  CHECK(page.has_header("Cache-Control: no-cache\r\n"));
  CHECK(page.has_header("Vary: Accept, Accept-Encoding\r\n"));
  CHECK(!page.has_header("Content-Encoding"));
  check_safe_headers(page);
}

TEST_CASE("assets have their types and may be kept for a year") {
  ServedPage server;
  const std::pair<const char*, const char*> types[] = {
      {"main.1A2B3C4D.js", "text/javascript; charset=utf-8"},
      {"main.0A1B2C3D.css", "text/css; charset=utf-8"},
      {"letters.5E6F7A8B.woff2", "font/woff2"},
      {"mark.9C0D1E2F.svg", "image/svg+xml"}};
  for (const auto& [name, type] : types) {
    CAPTURE(name);
    const Answer asset = server.get(std::string(kAssetsPrefix) + name);
    CHECK(asset.status == 200);
    CHECK(asset.body == page_data(std::string("assets/") + name));
    CHECK(asset.has_header(fmt::format("Content-Type: {}\r\n", type)));
    CHECK(asset.has_header("Cache-Control: public, max-age=31536000, immutable\r\n"));
    CHECK(asset.has_header("Vary: Accept-Encoding\r\n"));
    check_safe_headers(asset);
  }
}

TEST_CASE("clients that know gzip get compressed bytes under a tag of their own") {
  ServedPage server;
  const Answer plain = server.get(kScriptPath);
  const Answer packed = ask(server, kScriptPath, "Accept-Encoding: br, gzip\r\n");
  CHECK(packed.status == 200);
  CHECK(packed.has_header("Content-Encoding: gzip\r\n"));
  CHECK(packed.has_header("Content-Type: text/javascript; charset=utf-8\r\n"));
  CHECK(packed.body.substr(0, 3) == "\x1f\x8b\x08");
  CHECK(packed.body.size() < plain.body.size() / 2);
  CHECK(tag_of(packed) != tag_of(plain));
  SUBCASE("not if they refuse it") {
    CHECK(ask(server, kScriptPath, "Accept-Encoding: gzip;q=0\r\n").body == plain.body);
  }
  SUBCASE("not where it saves nothing") {
    const Answer font = ask(server, "/assets/letters.5E6F7A8B.woff2", "Accept-Encoding: gzip\r\n");
    CHECK(!font.has_header("Content-Encoding"));
    CHECK(font.body == page_data("assets/letters.5E6F7A8B.woff2"));
  }
}

TEST_CASE("an unchanged file is answered without its bytes") {
  ServedPage server;
  for (const std::string_view path : {std::string_view("/"), kScriptPath}) {
    CAPTURE(path);
    const std::string tag = tag_of(server.get(path));
    const Answer same = ask(server, path, "If-None-Match: " + tag + "\r\n");
    CHECK(same.status == 304);
    CHECK(same.body.empty());
    CHECK(tag_of(same) == tag);
    CHECK(same.has_header("Cache-Control: "));
    CHECK(same.has_header("Vary: "));
    check_safe_headers(same);
    CHECK(ask(server, path, "If-None-Match: \"other\", W/" + tag + "\r\n").status == 304);
    CHECK(ask(server, path, "If-None-Match: \"other\"\r\n").status == 200);
    // The compressed bytes are another representation.
    CHECK(ask(server, path, "Accept-Encoding: gzip\r\nIf-None-Match: " + tag + "\r\n").status ==
          200);
  }
}

TEST_CASE("HEAD has the head of GET and no body") {
  ServedPage server;
  for (const std::string_view path : {std::string_view("/"), kScriptPath}) {
    const Answer whole = server.get(path), head = ask(server, path, "", "HEAD");
    CHECK(head.status == 200);
    CHECK(head.body.empty());
    CHECK(tag_of(head) == tag_of(whole));
    CHECK(head.has_header(fmt::format("Content-Length: {}\r\n", whole.body.size())));
  }
}

TEST_CASE("files that the page does not have are not found, and nothing may keep that") {
  ServedPage server;
  for (const char* path :
       {"/assets/main.00000000.js", "/assets/..%2findex.html", "/assets/%2e%2e/index.html",
        "/assets/main.1A2B3C4D.js%00", "/assets/a/b"}) {
    CAPTURE(path);
    const Answer answer = server.get(path);
    CHECK(answer.status >= 400);
    CHECK(answer.body.find("a page of a test") == std::string::npos);
  }
  const Answer old = server.get("/assets/main.00000000.js");
  CHECK(old.status == 404);
  CHECK(old.has_header("Cache-Control: no-store\r\n"));
  CHECK(message_of(old) == "the page of this program has no such file: reload the page");
  CHECK(server.post("/assets/main.1A2B3C4D.js", "").status == 405);
  CHECK(server.post("/", "").status == 405);
}

TEST_CASE("strangers get the page and its files, which show nothing") {
  ServedPage server;
  for (const std::string_view path : {std::string_view("/"), kScriptPath}) {
    const Answer answer =
        server.exchange(fmt::format("GET {} HTTP/1.1\r\nHost: evil.example\r\nOrigin: "
                                    "http://evil.example\r\nConnection: close\r\n\r\n",
                                    path));
    CHECK(answer.status == 200);
    CHECK(!answer.has_header("Access-Control-Allow-Origin"));
  }
}

TEST_CASE("programs that accept no page learn that a server runs") {
  ServedPage server;
  const Answer answer = ask(server, "/", "Accept: */*\r\n");
  CHECK(answer.body == "Ollama is running");
  CHECK(answer.has_header("Vary: Accept\r\n"));
  CHECK(ask(server, "/", "Accept: text/html, */*;q=0.1\r\n").body == page_data("index.html"));
}

TEST_CASE("without a built-in page, a plain one of the same rules says how to get it") {
  Served server;
  const Answer page = server.get("/");
  CHECK(page.status == 200);
  CHECK(page.body.find("<code>make page</code>") != std::string::npos);
  CHECK(page.body.find("the program was built without Node") != std::string::npos);
  CHECK(page.body.find("https://") == std::string::npos);
  CHECK(page.body.find("<style") == std::string::npos);
  CHECK(page.has_header("Cache-Control: no-cache\r\n"));
  check_safe_headers(page);
  size_t files = 0;
  bool shows_pins = false;
  for (size_t at = 0; (at = page.body.find("\"/assets/", at)) != std::string::npos; ++files) {
    const size_t end = page.body.find('"', ++at);
    const Answer file = server.get(page.body.substr(at, end - at));
    CHECK(file.status == 200);
    CHECK(file.has_header("immutable\r\n"));
    CHECK(file.body.find("innerHTML") == std::string::npos);
    shows_pins |= file.body.find("asks to join") != std::string::npos;
  }
  CHECK(shows_pins);
  CHECK(files == 2);  // the style and the script
}

TEST_CASE("codings and tags are read as RFC 9110 writes them") {
  for (const char* yes :
       {"gzip", "GZIP", "br,gzip", " gzip ; q=0.5", "*", "x-gzip", "identity;q=0, *"}) {
    CAPTURE(yes);
    CHECK(accepts_gzip(yes));
  }
  for (const char* no :
       {"", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "gzipped"}) {
    CAPTURE(no);
    CHECK(!accepts_gzip(no));
  }
  CHECK(names_tag("\"a\"", "\"a\""));
  CHECK(names_tag("\"b\" , W/\"a\"", "\"a\""));
  CHECK(names_tag("*", "\"a\""));
  CHECK(!names_tag("", "\"a\""));
  CHECK(!names_tag("a", "\"a\""));
  CHECK(!names_tag("\"ab\"", "\"a\""));
}

}  // namespace lockstep
