// Decisions before a server reads a body, and that its health can be read even in a crowd, over
// real connections.
#include <memory>
#include <vector>

#include "server/served.h"
#include "support/sizes.h"
#include "support/temporary_folder.h"

namespace lockstep {
namespace {

std::string head(const std::string& method, const std::string& path, size_t bytes,
                 const std::string& more = "") {
  return method + " " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(bytes) + "\r\n" +
         more + "\r\n";
}

// A server that has one key.
class Keyed {
 public:
  Keyed()
      : key_(add_api_key(folder_.path() / kApiKeyFile, "laptop", 1).value()),
        server([&](ServerOptions& options) {
          options.access.keys = folder_.path() / kApiKeyFile;
          options.limits.body_bytes_max = 16 * kMiB;
        }) {
    server.model->says("a");
  }
  std::string with_key() const { return "Authorization: Bearer " + key_ + "\r\n"; }

 private:
  const TemporaryFolder folder_;
  const std::string key_;

 public:
  Served server;
};

int status_of_reply(uint16_t port, const std::string& bytes) {
  RawClient client(port);
  client.send(bytes);
  const std::string reply = client.read_reply();
  return reply.size() > 12 ? std::stoi(reply.substr(9, 3)) : 0;
}

}  // namespace

TEST_CASE("key, path and method are checked before the body arrives") {
  const Keyed keyed;
  const uint16_t port = keyed.server.port();
  const size_t announced = 16 * kMiB;
  CHECK(status_of_reply(port, head("POST", "/v1/completions", announced)) == 401);
  CHECK(status_of_reply(
            port, head("POST", "/v1/completions", announced, "Expect: 100-continue\r\n")) == 401);
  CHECK(status_of_reply(port, head("POST", "/v1/nothing", announced)) == 404);
  CHECK(status_of_reply(port, head("PUT", "/v1/completions", announced)) == 405);
  CHECK(status_of_reply(port, head("POST", "/v1/completions", announced,
                                   "Origin: http://evil\r\nAuthorization: Bearer lk-no\r\n")) ==
        403);
  // Routes about the server itself take no long body from anyone.
  CHECK(status_of_reply(port, head("GET", "/health", announced)) == 413);
  CHECK(status_of_reply(port, head("GET", "/v1/models", announced, keyed.with_key())) == 413);
  CHECK(status_of_reply(port, head("POST", "/v1/completions", announced + 1, keyed.with_key())) ==
        413);
}

TEST_CASE("strangers without a key and their bodies do not block a client with one") {
  const Keyed keyed;
  const uint16_t port = keyed.server.port();
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 16; ++i) {
    strangers.push_back(std::make_unique<RawClient>(port));
    strangers.back()->send(head("POST", "/v1/completions", 16 * kMiB));
    strangers.back()->send(std::string(16 * kMiB - 1, ' '));
  }
  const std::string body =
      R"({"prompt":"p","max_tokens":1,"user":")" + std::string(900'000, 'x') + R"("})";
  CHECK(status_of_reply(
            port, head("POST", "/v1/completions", body.size(), keyed.with_key()) + body) == 200);
}

TEST_CASE("a limit on the requests of a client counts from the request head on") {
  Served server([](ServerOptions& options) { options.access.limits.requests_per_minute = 1; });
  server.model->says("a");
  const std::string body = R"({"prompt":"p","max_tokens":1})";
  CHECK(status_of_reply(server.port(), head("POST", "/v1/completions", body.size()) + body) == 200);
  // No body is sent.
  CHECK(status_of_reply(server.port(), head("POST", "/v1/completions", 50'000)) == 429);
}

TEST_CASE("if all connections are taken, health is still available locally") {
  Served server([](ServerOptions& options) {
    options.limits.connections_max = 4;
    options.limits.connections_reserved = 2;
  });
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    CHECK(server.get("/health").status == 200);
  }
  CHECK(server.get("/metrics").status == 200);
  CHECK(server.get("/v1/models").status == 503);
}

}  // namespace lockstep
