#include "access/own_page.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep {
namespace {

HttpRequest page_request(const std::string& method, const std::string& origin,
                         const std::string& site) {
  HttpRequest request{.method = method};
  request.headers.emplace_back("host", "box:8600");
  if (!origin.empty()) request.headers.emplace_back("origin", origin);
  if (!site.empty()) request.headers.emplace_back("sec-fetch-site", site);
  return request;
}

}  // namespace

TEST_CASE("cookies count for the own page, and for addresses that a user types") {
  CHECK(may_use_cookies(page_request("GET", "", "")));  // a browser on plain http
  CHECK(may_use_cookies(page_request("GET", "", "same-origin")));
  CHECK(may_use_cookies(page_request("GET", "", "none")));
  for (const char* method : {"POST", "DELETE"}) {
    CHECK(may_use_cookies(page_request(method, "http://box:8600", "")));
    CHECK(may_use_cookies(page_request(method, "https://box:8600", "same-origin")));
    CHECK(may_use_cookies(page_request(method, "", "same-origin")));
  }
}

TEST_CASE("cookies do not count for other pages, even at another port of the same host") {
  for (const char* method : {"GET", "POST", "DELETE"}) {
    CAPTURE(method);
    for (const char* origin : {"http://box:8601", "http://box", "http://evil.example", "null",
                               "http://box:8600.evil.example", "ftp://box:8600"}) {
      CAPTURE(origin);
      CHECK(!may_use_cookies(page_request(method, origin, "")));
      CHECK(!may_use_cookies(page_request(method, origin, "same-origin")));
    }
    for (const char* site : {"same-site", "cross-site", "Same-Origin", "x"}) {
      CAPTURE(site);
      CHECK(!may_use_cookies(page_request(method, "", site)));
      CHECK(!may_use_cookies(page_request(method, "http://box:8600", site)));
    }
  }
}

TEST_CASE("a change without a word about its page is refused") {
  CHECK(!may_use_cookies(page_request("POST", "", "")));
  CHECK(!may_use_cookies(page_request("DELETE", "", "")));
  CHECK(!may_use_cookies(page_request("POST", "", "none")));
}

}  // namespace lockstep
