// Access to a router: the same rules as for a node, since its callers reach its backends.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include "net/raw_client.h"
#include "router/routed.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace lockstep {
namespace {

constexpr const char* kBody = R"({"model": "m", "prompt": "a"})";

// A router in front of one backend, which echoes the request.
struct GuardedRouter {
  explicit GuardedRouter(const std::function<void(AccessOptions&)>& change = [](AccessOptions&) {})
      : backend({"m"},
                [](const HttpRequest& request, const HttpReply& reply) {
                  std::string names;
                  for (const auto& header : request.headers) names += header.first + " ";
                  reply.send({200, "text/plain", names, {{"Access-Control-Allow-Origin", "*"}}});
                }),
        routed({&backend}, options_of(change)) {}

  static RouterOptions options_of(const std::function<void(AccessOptions&)>& change) {
    RouterOptions options;
    change(options.access);
    return options;
  }
  // The head and body of an answer. `headers` end with line ends and include the Host.
  std::string ask(std::string_view method, std::string_view path, std::string_view headers) const {
    RawClient client(routed.port());
    const std::string_view body = method == "POST" ? kBody : "";
    client.send(fmt::format("{} {} HTTP/1.1\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                            method, path, headers, body.size(), body));
    return client.read_to_end();
  }
  int status(std::string_view method, std::string_view path, std::string_view headers) const {
    return std::stoi(ask(method, path, headers).substr(9, 3));
  }

  FakeBackend backend;
  Routed routed;
};

}  // namespace

TEST_CASE("a router without keys answers only under its own names: others may be DNS rebinding") {
  const GuardedRouter router;
  for (const char* host : {"evil.example", "evil.example:8700", "10.0.0.5"}) {
    CAPTURE(host);
    const std::string line = fmt::format("Host: {}\r\n", host);
    CHECK(router.status("POST", "/v1/completions", line) == 403);
    for (const char* path : {"/v1/models", "/router/status", "/metrics"}) {
      CHECK(router.status("GET", path, line) == 403);
    }
    for (const char* path : {"/health", "/version"}) CHECK(router.status("GET", path, line) == 200);
  }
  CHECK(router.backend.requests == 0);
  CHECK(router.status("POST", "/v1/completions", "Host: localhost:8700\r\n") == 200);

  const GuardedRouter open([](AccessOptions& access) {
    access.is_open = true;
    access.host_names = {"llm.example"};
  });
  CHECK(open.status("POST", "/v1/completions", "Host: evil.example\r\n") == 403);
  CHECK(open.status("POST", "/v1/completions", "Host: 10.0.0.5:8700\r\n") == 200);
  CHECK(open.status("POST", "/v1/completions", "Host: llm.example\r\n") == 200);
}

TEST_CASE("a router with keys requires one, and with it accepts any name") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(path, "a", 1).value();
  const GuardedRouter router([&](AccessOptions& access) { access.keys = path; });
  const std::string local = "Host: localhost\r\n";
  const std::string with_key = "Host: llm.example\r\nAuthorization: Bearer " + key + "\r\n";
  const std::string refused = router.ask("POST", "/v1/completions", local);
  CHECK(refused.starts_with("HTTP/1.1 401 "));
  CHECK(contains(refused, "WWW-Authenticate: Bearer\r\n"));
  CHECK(contains(refused, "invalid_api_key"));
  CHECK(router.status("GET", "/v1/models", local) == 401);
  CHECK(router.status("POST", "/v1/completions", with_key) == 200);
  CHECK(router.status("GET", "/router/status", with_key) == 200);
  CHECK(router.status("GET", "/router/status", local) == 200);
  CHECK(router.status("GET", "/router/status", "Host: llm.example\r\n") == 401);
}

TEST_CASE("a page of another site gets nothing from a router unless its origin is allowed") {
  const std::string page = "Host: localhost\r\nOrigin: https://chat.example\r\n";
  const GuardedRouter closed;
  CHECK(contains(closed.ask("POST", "/v1/completions", page), "origin_not_allowed"));
  CHECK(closed.backend.requests == 0);
  const GuardedRouter allowing(
      [](AccessOptions& access) { access.origins = {"https://chat.example"}; });
  const std::string answer = allowing.ask("POST", "/v1/completions", page);
  CHECK(answer.starts_with("HTTP/1.1 200 "));
  CHECK(contains(answer, "Access-Control-Allow-Origin: https://chat.example\r\n"));
  CHECK(!contains(answer, "Access-Control-Allow-Origin: *"));  // the backend's own
  const std::string preflight =
      allowing.ask("OPTIONS", "/v1/completions", page + "Access-Control-Request-Method: POST\r\n");
  CHECK(preflight.starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a backend sees that a router asks, and no credentials that control a node") {
  const GuardedRouter router;
  const std::string answer =
      router.ask("POST", "/v1/completions",
                 "Host: localhost\r\nOrigin: http://localhost\r\nCookie: lockstep_page_1=a\r\n"
                 "X-Lockstep-Control: a\r\nAuthorization: Bearer a\r\n");
  CHECK(contains(answer, "via "));
  CHECK(contains(answer, "authorization "));
  for (const char* name : {"cookie ", "x-lockstep-control ", "origin "}) {
    CHECK_MESSAGE(!contains(answer, name), name);
  }
}

TEST_CASE("a router that others could reach needs a key or an explicit option to start") {
  FakeBackend backend({"m"}, [](const HttpRequest&, const HttpReply&) {});
  RouterOptions options;
  options.port = 0;
  options.backends = {backend.address()};
  for (const char* host : {"*", "0.0.0.0", "::", "10.0.0.1", "node.example"}) {
    options.host = host;
    const auto refused = Router::start(options);
    REQUIRE(!refused.ok());
    CHECK(contains(refused.error().message, "lockstep key add"));
  }
  options.host = "*";
  options.access.is_open = true;
  CHECK(Router::start(options).ok());
}

}  // namespace lockstep
