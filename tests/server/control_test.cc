// Control of a node and access to its PINs, over real connections: for callers with the control
// secret, or a browser admitted by `lockstep page`, and neither for a proxy nor another user of the
// machine.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include "server/fake_cluster.h"
#include "server/served.h"

namespace lockstep {
namespace {

constexpr const char* kChanges[] = {"/cluster/load", "/cluster/unload", "/cluster/restart",
                                    "/cluster/token", "/control/page"};

// A node of a cluster, and raw requests to it.
struct ControlledNode {
  explicit ControlledNode(const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {})
      : server(change, &cluster) {}

  // `headers` end with line ends; the default Host is localhost.
  Answer ask(std::string_view method, std::string_view path, const std::string& headers) {
    const bool has_host = ("\n" + headers).find("\nHost:") != std::string::npos;
    return server.exchange(
        fmt::format("{} {} HTTP/1.1\r\n{}{}Connection: close\r\nContent-Length: 0\r\n\r\n", method,
                    path, has_host ? "" : "Host: localhost:8600\r\n", headers));
  }
  std::string code_of_token(const std::string& headers) {
    const Answer answer = ask("POST", "/cluster/token", headers);
    return answer.status == 200 ? "" : text_at(at(answer.json(), "error", "code"));
  }
  bool shows_pins(const std::string& headers) {
    const Answer answer = ask("GET", "/cluster/status", headers);
    return answer.status == 200 && find(answer.json(), "pins") != nullptr;
  }
  // The header lines of a caller with the secret, for one request each.
  std::string token_line() { return server.secret_line("POST", "/cluster/token"); }
  std::string status_line() { return server.secret_line("GET", "/cluster/status"); }
  // The cookie header of a browser that has opened an address of `lockstep page`.
  std::string cookie_line() {
    const Json said = server.control("/control/page", "").json();
    const Answer entered = ask("GET", text_at(at(said, "path")), "");
    REQUIRE(entered.status == 303);
    CHECK(entered.has_header("Location: /\r\n"));
    const size_t from = entered.head.find("Set-Cookie: ") + 12;
    return "Cookie: " + entered.head.substr(from, entered.head.find(';', from) - from) + "\r\n";
  }

  FakeCluster cluster;
  Served server;
};

}  // namespace

TEST_CASE("control needs the secret: being local is not enough") {
  ControlledNode node;
  for (const char* path : kChanges) {
    const Answer answer = node.ask("POST", path, "");
    CHECK_MESSAGE(answer.status == 403, path);
    CHECK(at(answer.json(), "error", "code") == "control_needed");
    const std::string message = text_at(at(answer.json(), "error", "message"));
    CHECK(message.find("lockstep page") != std::string::npos);
  }
  CHECK(node.code_of_token("X-Lockstep-Control: \r\n") == "control_needed");
  CHECK(node.code_of_token("X-Lockstep-Control: " + std::string(64, '0') + "\r\n") ==
        "control_needed");
  CHECK(!node.shows_pins(""));
  CHECK(node.ask("GET", "/cluster/status", "").json().get_object()["control"] == false);
  CHECK(node.cluster.loaded().empty());
  CHECK(node.code_of_token(node.token_line()) == "");
  CHECK(node.shows_pins(node.status_line()));
  for (const char* host : {"localhost", "127.0.0.1:8600", "[::1]:8600"}) {
    CHECK(node.code_of_token(fmt::format("Host: {}\r\n{}", host, node.token_line())) == "");
  }
}

TEST_CASE("a proxy, a foreign name and a foreign page have no control even with the secret") {
  ControlledNode node;
  for (const char* headers :
       {"Via: 1.1 cache\r\n", "X-Forwarded-Proto: https\r\n", "X-Forwarded-Host: a\r\n",
        "CF-Connecting-IP: 10.0.0.9\r\n", "X-Forwarded-For: 10.0.0.9\r\n", "Forwarded: for=a\r\n",
        "X-Real-IP: 10.0.0.9\r\n", "True-Client-IP: 10.0.0.9\r\n", "Fly-Client-IP: 10.0.0.9\r\n",
        "Host: lockstep.example:8600\r\n", "Host: 127.lockstep.example\r\n",
        "Origin: http://lockstep.example\r\n", "Origin: null\r\n",
        "Origin: http://localhost:3000\r\n"}) {
    CAPTURE(headers);
    CHECK(node.code_of_token(headers + node.token_line()) == "not_local");
    CHECK(!node.shows_pins(headers + node.status_line()));
  }
}

TEST_CASE("a proof of control is good for one request, once") {
  ControlledNode node;
  const std::string line = node.token_line();
  CHECK(node.code_of_token(line) == "");
  CHECK(node.code_of_token(line) == "control_needed");
  CHECK(node.code_of_token(node.status_line()) == "control_needed");
  CHECK(!node.shows_pins(node.token_line()));
  const std::string restart = node.server.secret_line("POST", "/cluster/restart");
  CHECK(node.ask("POST", "/cluster/load", restart).status == 403);
  // The secret itself, which older versions sent, is no proof.
  const std::string secret = "X-Lockstep-Control: " + node.server.secret().text() + "\r\n";
  CHECK(node.code_of_token(secret) == "control_needed");

  const std::string other_body = node.server.secret_line("POST", "/cluster/load", "{}");
  std::string text = Served::post_text("/cluster/load", R"({"model":"m"})");
  text.insert(text.find("\r\n") + 2, other_body);
  const Answer answer = node.server.exchange(text);
  CHECK(answer.status == 403);
  CHECK(text_at(at(answer.json(), "error", "message")).find("body") != std::string::npos);
  CHECK(node.cluster.loaded().empty());
}

TEST_CASE("a browser that opened the page's address has control from this site only") {
  ControlledNode node;
  const std::string cookie = node.cookie_line();
  const std::string own = "Origin: http://localhost:8600\r\n";
  CHECK(node.shows_pins(cookie));
  CHECK(node.ask("GET", "/cluster/status", cookie).json().get_object()["control"] == true);
  CHECK(node.code_of_token(cookie + own) == "");
  CHECK(node.code_of_token(cookie) == "control_needed");  // not sent by a browser's page
  CHECK(node.code_of_token(cookie + "Origin: http://localhost:3000\r\n") == "not_local");
  CHECK(node.code_of_token(cookie + own + "Via: 1.1 a\r\n") == "not_local");
  CHECK(node.code_of_token("Cookie: lockstep_page_00000000=a\r\n" + own) == "control_needed");
}

TEST_CASE("an address of the page works once, and only for a local browser") {
  ControlledNode node;
  const std::string path = text_at(at(node.server.control("/control/page", "").json(), "path"));
  CHECK(node.ask("GET", path, "Via: 1.1 a\r\n").status == 403);
  CHECK(node.ask("GET", path, "Host: node.example\r\n").status == 403);
  CHECK(node.ask("GET", path, "").status == 303);
  CHECK(node.ask("GET", path, "").status == 403);
  CHECK(node.ask("GET", "/page/guess", "").status == 403);
  CHECK(node.ask("GET", "/page", "").status == 404);
}

TEST_CASE("without control over HTTP neither the secret nor a page changes anything") {
  ControlledNode node([](ServerOptions& options) { options.access.takes_control = false; });
  for (const char* path : kChanges) {
    const Answer answer = node.ask("POST", path, node.server.secret_line("POST", path));
    CHECK_MESSAGE(answer.status == 403, path);
    const std::string message = text_at(at(answer.json(), "error", "message"));
    CHECK(message.find("--no-control") != std::string::npos);
  }
  CHECK(!node.shows_pins(node.status_line()));
  const std::string nonce(64, 'c');  // for callers that have the secret
  CHECK(node.ask("GET", "/control/proof?nonce=" + nonce, "").status == 200);
  CHECK(node.ask("GET", "/page/guess", "").status == 403);
}

TEST_CASE("behind a proxy no caller counts as local if there are keys") {
  const TemporaryFolder folder;
  const auto keys = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(keys, "a", 1).value();
  const auto look = [&](bool takes_control, const std::string& headers) {
    ControlledNode node([&](ServerOptions& options) {
      options.access.keys = keys;
      options.access.takes_control = takes_control;
    });
    const std::string sent = headers == "secret" ? node.status_line() : headers;
    return node.ask("GET", "/cluster/status", sent).status;
  };
  CHECK(look(true, "") == 200);
  CHECK(look(false, "") == 401);
  CHECK(look(false, "secret") == 200);
  CHECK(look(false, "Authorization: Bearer " + key + "\r\n") == 200);
}

TEST_CASE("a node proves to a caller that it has the secret, without revealing it") {
  ControlledNode node;
  const std::string nonce(64, 'c');
  const Answer answer = node.ask("GET", "/control/proof?nonce=" + nonce, "");
  REQUIRE(answer.status == 200);
  CHECK(answer.body.find(node.server.secret().text()) == std::string::npos);
  CHECK(node.token_line().find(node.server.secret().text()) == std::string::npos);
  CHECK(text_at(at(answer.json(), "proof")).size() == 64);
  CHECK(node.ask("GET", "/control/proof?nonce=1", "").status == 400);
  CHECK(node.ask("GET", "/control/proof", "").status == 400);
  CHECK(node.ask("GET", "/control/proof?nonce=" + nonce, "Via: 1.1 a\r\n").status == 403);
}

}  // namespace lockstep
