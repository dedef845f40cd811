// Access to a server: keys, other machines, pages of other sites, and limits, over real
// connections.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/files/unique_fd.h"
#include "server/served_keys.h"

namespace lockstep {
TEST_CASE("without keys local programs need none, and one that is sent is ignored") {
  ServedKeys served;
  CHECK(served.post().status == 200);
  CHECK(served.post(bearer("anything")).status == 200);
  CHECK(served.post("x-api-key: anything\r\n").status == 200);
}

TEST_CASE("a key that is added or removed takes effect without a restart") {
  ServedKeys served;
  CHECK(served.post().status == 200);
  const std::string key = served.add("laptop");
  const Answer refused = served.post();
  CHECK(refused.status == 401);
  CHECK(refused.has_header("WWW-Authenticate: Bearer\r\n"));
  CHECK(code_of(refused) == "invalid_api_key");
  CHECK(at(refused.json(), "error", "type") == "authentication_error");
  CHECK(served.post(bearer("lk-wrong")).status == 401);
  CHECK(served.post("Authorization: Basic " + key + "\r\n").status == 401);
  CHECK(served.post(bearer(key)).status == 200);
  CHECK(served.post("authorization: bearer   " + key + "\r\n").status == 200);
  CHECK(served.post("X-Api-Key: " + key + "\r\n").status == 200);
  const std::string other = served.add("phone");
  served.remove("laptop");
  CHECK(served.post(bearer(key)).status == 401);
  CHECK(served.post(bearer(other)).status == 200);
  served.remove("phone");
  CHECK(served.post().status == 200);
}

TEST_CASE("each API has errors in its own shape") {
  ServedKeys served;
  served.add("a");
  CHECK(at(served.ask("GET", "/v1/models").json(), "error", "message").is_string());
  CHECK(at(served.ask("GET", "/v1/nothing").json(), "error", "message").is_string());
  CHECK(at(served.ask("GET", "/api/nothing").json(), "error").is_string());
}

TEST_CASE("reading needs no key for local programs, but for others it does") {
  ServedKeys served;
  const std::string key = served.add("a");
  for (const char* path : {"/", "/health"}) CHECK(served.ask("GET", path).status == 200);
  for (const char* path : {"/metrics", "/cluster/status"}) {
    CAPTURE(path);
    CHECK(served.ask("GET", path).status == 200);
    const std::string proxied = "X-Forwarded-For: 10.0.0.9\r\n";
    CHECK(served.ask("GET", path, proxied).status == 401);
    CHECK(served.ask("GET", path, proxied + bearer(key)).status == 200);
    CHECK(served.ask("GET", path, "Host: node.example\r\n").status == 401);
  }
}

TEST_CASE("without keys a name that is not this machine's own is refused: DNS rebinding") {
  ServedKeys served;
  for (const char* host : {"evil.example", "evil.example:8600", "127.evil.example", "10.0.0.5"}) {
    CAPTURE(host);
    const Answer answer = served.post("Host: " + std::string(host) + "\r\n");
    CHECK(answer.status == 403);
    CHECK(code_of(answer) == "host_not_allowed");
  }
  for (const char* host : {"localhost", "localhost:8600", "127.0.0.1:1", "127.3.2.1", "[::1]:5"}) {
    CHECK(served.post("Host: " + std::string(host) + "\r\n").status == 200);
  }
  CHECK(served.ask("GET", "/cluster/status", "Host: evil.example\r\n").status == 403);
  const std::string key = served.add("a");
  CHECK(served.post("Host: evil.example\r\n" + bearer(key)).status == 200);
}

TEST_CASE("an open server answers under its addresses and names, and under no other") {
  ServedKeys open([](AccessOptions& access) {
    access.is_open = true;
    access.host_names = {"Gateway.Example"};
  });
  std::array<char, 256> host_name{};
  REQUIRE(::gethostname(host_name.data(), host_name.size() - 1) == 0);
  const std::string own = host_name.data();
  for (const std::string& host :
       {std::string("10.0.0.5:8600"), std::string("[fe80::1]:8600"), std::string("localhost"),
        std::string("gpu7.local:8600"), std::string("gateway.example:443"), own, own + ":8600"}) {
    CHECK_MESSAGE(open.post("Host: " + host + "\r\n").status == 200, host);
  }
  for (const char* host : {"evil.example", "evil.example:8600", "x.gateway.example",
                           "10.0.0.5.evil.example", "gpu7.local.evil.example"}) {
    CAPTURE(host);
    // A request as a browser sends it for a foreign name that was rebound to this address.
    const std::string rebound =
        "Host: " + std::string(host) + "\r\nOrigin: http://" + host + "\r\n";
    for (const std::string& headers : {rebound, "Host: " + std::string(host) + "\r\n"}) {
      const Answer answer = open.post(headers);
      CHECK(answer.status == 403);
      CHECK(code_of(answer) == "host_not_allowed");
      CHECK(open.ask("GET", "/cluster/status", headers).status == 403);
    }
  }
  const std::string key = open.add("a");
  CHECK(open.post("Host: evil.example\r\n" + bearer(key)).status == 200);
}

TEST_CASE("a configured name counts as this machine's even without --open") {
  ServedKeys served([](AccessOptions& access) { access.host_names = {"llm.example"}; });
  CHECK(served.post("Host: llm.example\r\n").status == 200);
  CHECK(served.post("Host: other.example\r\n").status == 403);
  CHECK(served.post("Host: 10.0.0.5\r\n").status == 403);
}

// A FIFO that blocks its reader stands for a disk that does not respond.
TEST_CASE("a hanging disk with the keys delays no request") {
  ServedKeys served;
  const std::string key = served.add("a");
  const auto path = served.folder.path() / kApiKeyFile;
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  // Until the file has been noticed, or should have been.
  const auto end = std::chrono::steady_clock::now() + 4 * KeyRing::kPeriod;
  bool is_found = false;
  while (!is_found && std::chrono::steady_clock::now() < end) {
    REQUIRE(served.post(bearer(key)).status == 200);
    const UniqueFd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK));
    is_found = writer.is_open();  // which unblocks its reader
  }
  CHECK(served.post(bearer(key)).status == 200);
}

TEST_CASE("a page of another site is refused unless its origin is allowed or it has a key") {
  const std::string origin = "Origin: https://chat.example\r\n";
  ServedKeys closed;
  const Answer refused = closed.post(origin);
  CHECK(refused.status == 403);
  CHECK(code_of(refused) == "origin_not_allowed");
  CHECK(!refused.has_header("Access-Control"));
  CHECK(closed.server.model->request_count() == 0);
  CHECK(closed.post("Origin: null\r\n").status == 403);
  CHECK(closed.post("Origin: http://localhost\r\n").status == 200);  // its own page
  const std::string ask = "Access-Control-Request-Method: POST\r\n";
  CHECK(closed.ask("OPTIONS", kCompletionsPath, origin + ask).status == 405);

  ServedKeys allowing([](AccessOptions& access) { access.origins = {"https://chat.example"}; });
  const Answer answer = allowing.post(origin);
  CHECK(answer.status == 200);
  CHECK(answer.has_header("Access-Control-Allow-Origin: https://chat.example\r\n"));
  CHECK(answer.has_header("Vary: Origin\r\n"));
  CHECK(allowing.post("Origin: https://chat.example.evil\r\n").status == 403);
  const Answer preflight =
      allowing.ask("OPTIONS", kCompletionsPath,
                   origin + ask + "Access-Control-Request-Headers: authorization,x-a\r\n");
  CHECK(preflight.status == 200);
  CHECK(preflight.has_header("Access-Control-Allow-Origin: https://chat.example\r\n"));
  CHECK(preflight.has_header("Access-Control-Allow-Headers: authorization,x-a\r\n"));
  CHECK(
      allowing.ask("OPTIONS", kCompletionsPath, "Origin: https://other.example\r\n" + ask).status ==
      405);

  const std::string key = allowing.add("a");
  CHECK(allowing.post(origin).status == 401);
  CHECK(allowing.post(origin).has_header("Access-Control-Allow-Origin: https://chat.example\r\n"));
  CHECK(allowing.post("Origin: https://other.example\r\n" + bearer(key)).status == 200);
  // Control of the cluster stays local.
  CHECK(allowing.ask("POST", "/cluster/token", origin + bearer(key)).status == 403);
}

TEST_CASE("a streamed answer has the CORS headers too") {
  ServedKeys served([](AccessOptions& access) { access.origins = {"*"}; });
  const Answer answer = served.ask("POST", kCompletionsPath, "Origin: app://notes\r\n",
                                   R"({"prompt":"p","max_tokens":1,"stream":true})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("Access-Control-Allow-Origin: app://notes\r\n"));
}

TEST_CASE("requests are limited per key, and a refusal says when to retry") {
  ServedKeys served([](AccessOptions& access) { access.limits.requests_per_minute = 2; });
  const std::string one = served.add("one");
  const std::string two = served.add("two");
  CHECK(served.post(bearer(one)).status == 200);
  CHECK(served.post(bearer(one)).status == 200);
  const Answer refused = served.post(bearer(one));
  CHECK(refused.status == 429);
  CHECK(refused.has_header("Retry-After: 30\r\n"));
  CHECK(at(refused.json(), "error", "type") == "rate_limit_error");
  CHECK(served.post(bearer(two)).status == 200);
  CHECK(served.ask("GET", "/health").status == 200);  // reading costs nothing
  const auto requests = [&](size_t index) { return served.server.model->request(index).request; };
  CHECK(requests(0).client == requests(1).client);
  CHECK(requests(0).client != requests(2).client);
  CHECK(requests(2).client != 0);
}

TEST_CASE("a key's concurrent answers are limited; they end with the answer or its client") {
  Served server([](ServerOptions& options) { options.access.limits.requests_at_once = 1; });
  const std::string body = R"({"prompt":"p","max_tokens":9,"stream":true})";
  auto streaming = std::make_unique<RawClient>(server.port());
  streaming->send(Served::post_text(kCompletionsPath, body));
  const FakeModel::Running running = server.model->request(0);
  CHECK(server.post(kCompletionsPath, kShortBody).status == 429);
  FakeModel::say(running, "a");
  streaming->read_until("\"a\"");
  CHECK(server.post(kCompletionsPath, kShortBody).status == 429);
  running.end(FinishReason::kStop);
  streaming->read_to_end();
  // The answer is over, but its thread releases the last handle a little later.
  server.model->says("b");
  int status = 429;
  for (int i = 0; i < 1000 && status == 429; ++i)
    status = server.post(kCompletionsPath, kShortBody).status;
  CHECK(status == 200);
}

TEST_CASE("a client that disconnects makes room for the next") {
  Served server([](ServerOptions& options) { options.access.limits.requests_at_once = 1; });
  auto streaming = std::make_unique<RawClient>(server.port());
  streaming->send(Served::post_text(kCompletionsPath, R"({"prompt":"p","stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  streaming->close();
  CHECK(server.model->waits_for_cancel(running.id));
  server.model->says("b");
  int status = 429;
  for (int i = 0; i < 1000 && status == 429; ++i)
    status = server.post(kCompletionsPath, kShortBody).status;
  CHECK(status == 200);
}

TEST_CASE("a client that does not read its stream is dropped and its request cancelled") {
  Served server([](ServerOptions& options) { options.limits.unsent_bytes_max = 100'000; });
  RawClient client(server.port(), 4096);
  client.send(
      Served::post_text(kCompletionsPath, R"({"prompt":"p","max_tokens":900,"stream":true})"));
  const FakeModel::Running running = server.model->request(0);
  // Each token is an event of about 200 bytes: more than the sockets and the limit hold together.
  const std::string text(1000, 'x');
  for (int i = 0; i < 100; ++i) FakeModel::say(running, text);
  CHECK(server.model->waits_for_cancel(running.id));
  CHECK(server.get("/health").status == 200);
}

TEST_CASE("a server that others could reach needs a key or an explicit option to start") {
  const TemporaryFolder folder;
  ServerOptions options;
  options.port = 0;
  options.host = "*";
  options.access.keys = folder.path() / kApiKeyFile;
  const ModelServices models{std::make_shared<FakeModel>()};
  const auto refused = Server::start(options, models);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message.find("lockstep key add") != std::string::npos);
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "node.example"}) {
    options.host = host;
    CHECK(!Server::start(options, models).ok());
  }
  for (const char* host : {"localhost", "127.0.0.1"}) {
    options.host = host;
    CHECK(Server::start(options, models).ok());
  }
  options.host = "*";
  options.access.is_open = true;
  CHECK(Server::start(options, models).ok());
  options.access.is_open = false;
  REQUIRE(add_api_key(options.access.keys, "a", 1).ok());
  CHECK(Server::start(options, models).ok());
}

}  // namespace lockstep
