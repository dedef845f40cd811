// As whom a node takes the page: its cookies for control and for keys, and whom they do not serve.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>

#include "server/served_keys.h"

namespace lockstep {
namespace {

constexpr const char* kSession = "/v1/session";
constexpr const char* kOwnPage = "Origin: http://localhost\r\n";

std::string cookie_of(const Answer& answer) {
  const size_t at = answer.head.find("Set-Cookie: ");
  REQUIRE(at != std::string::npos);
  const size_t from = at + std::string_view("Set-Cookie: ").size();
  return "Cookie: " + answer.head.substr(from, answer.head.find(';', from) - from) + "\r\n";
}

std::string facts_of(const Answer& answer) {
  REQUIRE(answer.status == 200);
  CHECK(answer.has_header("Cache-Control: no-store\r\n"));
  return answer.body;
}

// The cookie of a browser that has traded this key.
std::string key_cookie(ServedKeys& node, const std::string& key) {
  const Answer opened = node.ask("POST", kSession, kOwnPage + bearer(key));
  REQUIRE(opened.status == 200);
  return cookie_of(opened);
}

// The cookie of a browser that has opened an address of `lockstep page`.
std::string control_cookie(ServedKeys& node) {
  const auto path = node.server.server().make_page_path();
  REQUIRE(path.ok());
  return cookie_of(node.ask("GET", path.value()));
}

}  // namespace

TEST_CASE("the page learns as whom the node takes it") {
  ServedKeys node;
  CHECK(facts_of(node.ask("GET", kSession)) ==
        R"({"control":false,"key":false,"keys_needed":false,"demo":false})");
  const std::string control = control_cookie(node);
  CHECK(facts_of(node.ask("GET", kSession, control)) ==
        R"({"control":true,"key":false,"keys_needed":false,"demo":false})");
  const std::string key = node.add("a");
  CHECK(facts_of(node.ask("GET", kSession)) ==
        R"({"control":false,"key":false,"keys_needed":true,"demo":false})");
  CHECK(facts_of(node.ask("GET", kSession, bearer(key))) ==
        R"({"control":false,"key":true,"keys_needed":true,"demo":false})");
  CHECK(facts_of(node.ask("GET", kSession, key_cookie(node, key))) ==
        R"({"control":false,"key":true,"keys_needed":true,"demo":false})");
  CHECK(facts_of(node.ask("GET", kSession, control)) ==
        R"({"control":true,"key":false,"keys_needed":true,"demo":false})");
}

TEST_CASE("senders who are refused anyway learn nothing from the session") {
  ServedKeys node;
  CHECK(code_of(node.ask("GET", kSession, "Host: evil.example\r\n")) == "host_not_allowed");
  CHECK(code_of(node.ask("GET", kSession, "Origin: http://evil.example\r\n")) ==
        "origin_not_allowed");
  CHECK(node.ask("PUT", kSession).status == 405);
  node.add("a");
  CHECK(code_of(node.ask("GET", kSession, "Origin: http://evil.example\r\n")) ==
        "origin_not_allowed");
}

TEST_CASE("a key is traded for a cookie that is as good, for the own page only") {
  ServedKeys node;
  const std::string cookie = key_cookie(node, node.add("phone"));
  CHECK(node.post(cookie + kOwnPage).status == 200);
  CHECK(node.post(cookie + "Sec-Fetch-Site: same-origin\r\n").status == 200);
  CHECK(node.ask("GET", "/v1/models", cookie).status == 200);
  // Under another name of the node, its page is its own page too.
  const std::string name = "Host: box.example\r\n";
  CHECK(node.post(name + cookie + "Origin: http://box.example\r\n").status == 200);
  CHECK(node.ask("GET", "/v1/models", name + cookie).status == 200);

  SUBCASE("a change that does not say whose page sent it needs a key") {
    CHECK(node.post(cookie).status == 401);
    CHECK(node.post(cookie + "Sec-Fetch-Site: none\r\n").status == 401);
  }
  SUBCASE("a page of another site or port is refused") {
    for (const char* page : {"Origin: http://evil.example\r\n", "Origin: http://localhost:3000\r\n",
                             "Origin: null\r\n"}) {
      CAPTURE(page);
      CHECK(code_of(node.post(cookie + page)) == "origin_not_allowed");
      CHECK(code_of(node.ask("GET", "/v1/models", cookie + page)) == "origin_not_allowed");
    }
    for (const char* site : {"Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: cross-site\r\n"}) {
      CAPTURE(site);
      CHECK(node.post(cookie + kOwnPage + site).status == 401);
      CHECK(node.ask("GET", "/v1/models", cookie + site).status == 401);
    }
  }
  SUBCASE("a wrong key next to it is wrong") {
    CHECK(node.post(cookie + kOwnPage + bearer("lk-0")).status == 401);
  }
  SUBCASE("a changed cookie is none") {
    CHECK(node.post(cookie.substr(0, cookie.size() - 3) + "\r\n" + kOwnPage).status == 401);
  }
  SUBCASE("it gives no control") {
    CHECK(code_of(node.ask("POST", "/control/page", cookie + kOwnPage)) == "control_needed");
  }
}

TEST_CASE("a page whose origin is allowed may use a key, but no cookie") {
  ServedKeys node([](AccessOptions& options) { options.origins = {"http://chat.example"}; });
  const std::string key = node.add("a");
  const std::string page = "Origin: http://chat.example\r\n";
  CHECK(node.post(page + bearer(key)).status == 200);
  CHECK(node.post(page + key_cookie(node, key)).status == 401);
  CHECK(code_of(node.ask("POST", kSession, page + bearer(key))) == "origin_not_allowed");
}

TEST_CASE("a session ends with its key and on request") {
  ServedKeys node;
  const std::string key = node.add("a"), other = node.add("b");
  const std::string cookie = key_cookie(node, key), kept = key_cookie(node, other);
  SUBCASE("removed key") {
    node.remove("a");
    CHECK(node.post(cookie + kOwnPage).status == 401);
  }
  SUBCASE("asked to") {
    CHECK(code_of(node.ask("DELETE", kSession, cookie)) == "origin_not_allowed");
    CHECK(code_of(node.ask("DELETE", kSession, cookie + "Origin: http://evil.example\r\n")) ==
          "origin_not_allowed");
    CHECK(node.post(cookie + kOwnPage).status == 200);  // neither ended it
    const Answer ended = node.ask("DELETE", kSession, cookie + kOwnPage);
    CHECK(ended.body == R"({"ended":true})");
    CHECK(ended.has_header("Max-Age=0;"));
    CHECK(node.post(cookie + kOwnPage).status == 401);
    CHECK(node.ask("DELETE", kSession, cookie + kOwnPage).body == R"({"ended":false})");
  }
  CHECK(node.post(kept + kOwnPage).status == 200);
}

TEST_CASE("only a valid key opens a session, and only for the own page") {
  ServedKeys node;
  CHECK(code_of(node.ask("POST", kSession, kOwnPage)) == "no_api_keys");  // none is needed
  CHECK(code_of(node.ask("POST", kSession, "Host: evil.example\r\n")) == "host_not_allowed");
  const std::string key = node.add("a");
  CHECK(node.ask("POST", kSession, kOwnPage).status == 401);
  CHECK(node.ask("POST", kSession, kOwnPage + bearer("lk-1")).status == 401);
  CHECK(node.ask("POST", kSession, kOwnPage + key_cookie(node, key)).status == 401);
  for (const char* page : {"Origin: http://evil.example\r\n", "Origin: http://localhost:3000\r\n",
                           "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n"}) {
    CAPTURE(page);
    CHECK(code_of(node.ask("POST", kSession, page + bearer(key))) == "origin_not_allowed");
  }
  const Answer opened = node.ask("POST", kSession, kOwnPage + bearer(key));
  CHECK(opened.body == R"({"key":true,"expires_s":604800})");
  CHECK(opened.has_header("; HttpOnly; SameSite=Strict\r\n"));
  CHECK(opened.has_header("Cache-Control: no-store\r\n"));
  const Answer encrypted = node.ask(
      "POST", kSession, "Host: box.example\r\nOrigin: https://box.example\r\n" + bearer(key));
  CHECK(encrypted.has_header("; HttpOnly; SameSite=Strict; Secure\r\n"));
}

TEST_CASE("the page with control needs no key, on this machine") {
  ServedKeys node;
  node.add("a");
  const std::string cookie = control_cookie(node);
  CHECK(node.post(cookie + kOwnPage).status == 200);
  CHECK(node.ask("GET", "/v1/models", cookie).status == 200);
  CHECK(node.post().status == 401);
  CHECK(node.post(cookie).status == 401);
  for (const char* lines :
       {"Origin: http://localhost:3000\r\n", "Origin: http://evil.example\r\n"}) {
    CHECK(code_of(node.post(cookie + lines)) == "origin_not_allowed");
  }
  for (const char* lines : {"X-Forwarded-For: 10.0.0.1\r\n", "Host: box.example\r\n",
                            "Sec-Fetch-Site: same-site\r\n"}) {
    CAPTURE(lines);
    CHECK(node.ask("GET", "/v1/models", cookie + lines).status == 401);
    CHECK(node.ask("GET", "/cluster/doctor", cookie + lines).status == 403);
  }
}

TEST_CASE("a node for use behind a proxy takes keys and their sessions only") {
  ServedKeys node([](AccessOptions& options) { options.takes_control = false; });
  const std::string proxy = "X-Forwarded-For: 10.0.0.1\r\nHost: llm.example\r\n";
  const std::string key = node.add("a");
  const Answer opened =
      node.ask("POST", kSession, proxy + "Origin: https://llm.example\r\n" + bearer(key));
  REQUIRE(opened.status == 200);
  const std::string cookie = cookie_of(opened);
  CHECK(node.post(proxy + cookie + "Origin: https://llm.example\r\n").status == 200);
  CHECK(facts_of(node.ask("GET", kSession, proxy + cookie)) ==
        R"({"control":false,"key":true,"keys_needed":true,"demo":false})");
}

}  // namespace lockstep
