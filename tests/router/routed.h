// Fake backends and a router in front of them, each on its own thread for the duration of a test.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "json/json.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "router/router.h"
#include "support/comes_true.h"

namespace lockstep {

inline constexpr const char* kAny = R"({"model": "m", "prompt": "a"})";  // of any client

// A node as a router sees it: healthy, with these models, and an answer to every POST.
class FakeBackend {
 public:
  FakeBackend(std::vector<std::string> models, HttpServer::Handler answer) {
    HttpServer::Limits limits;
    limits.unsent_bytes_max = 64 << 20;
    limits.drain_timeout = std::chrono::milliseconds(100);
    auto handler = [this, models = std::move(models), answer = std::move(answer)](
                       HttpRequest request, HttpReply reply) {
      if (request.path == "/health") return reply.send({.status = health.load(), .body = "{}"});
      if (request.path == "/v1/models") return reply.send({.body = list(models)});
      ++requests;
      answer(std::move(request), std::move(reply));
    };
    server_ = std::move(HttpServer::listen("127.0.0.1", 0, limits, std::move(handler)).value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~FakeBackend() { end(); }

  // Closes the listening socket.
  void end() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
    address_ = address();
    server_.reset();
  }
  NetAddress address() const {
    return server_ ? NetAddress{"127.0.0.1", server_->port()} : address_;
  }

  std::atomic<int> requests{0};
  std::atomic<int> health{200};

 private:
  static std::string list(const std::vector<std::string>& models) {
    JsonArray data;
    for (const std::string& model : models) {
      data.push_back(JsonObject{{"id", model}, {"object", "model"}});
    }
    return dump_json(JsonObject{{"object", "list"}, {"data", data}});
  }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  NetAddress address_;
};

class Routed {
 public:
  // Returns once every healthy backend has answered.
  explicit Routed(const std::vector<const FakeBackend*>& backends, RouterOptions options = {}) {
    int64_t well = 0;
    for (const FakeBackend* backend : backends) {
      options.backends.push_back(backend->address());
      well += backend->health == 200 ? 1 : 0;
    }
    start(std::move(options), well);
  }
  // In front of the backends that the options name, all of which are healthy.
  explicit Routed(RouterOptions options) {
    const auto well = static_cast<int64_t>(options.backends.size());
    start(std::move(options), well);
  }
  ~Routed() {
    router_->stop();
    thread_.join();
  }

  uint16_t port() const { return router_->port(); }
  HttpAnswer get(const std::string& target) const { return call("GET", target, ""); }
  HttpAnswer post(const std::string& body, const std::string& target = "/v1/completions") const {
    return call("POST", target, body);
  }
  Json status() const { return parse_json(get("/router/status").body).value(); }
  int64_t counter(std::string_view name) const { return get_int(status(), name).value().value(); }
  // Polls with a deadline.
  void wait_for_healthy(int64_t count) const {
    wait([&] {
      int64_t healthy = 0;
      const Json now = status();
      for (const Json& backend : find(now, "backends")->get_array()) {
        healthy += find(backend, "healthy")->get_bool() ? 1 : 0;
      }
      return healthy == count;
    });
  }
  static void wait(const std::function<bool()>& condition) { REQUIRE(comes_true(condition)); }

 private:
  void start(RouterOptions options, int64_t well) {
    options.port = 0;
    options.host = "127.0.0.1";
    options.poll.interval = std::chrono::milliseconds(20);
    router_ = std::move(Router::start(std::move(options)).value());
    thread_ = std::thread([this] { router_->run(); });
    wait_for_healthy(well);
  }
  HttpAnswer call(const std::string& method, const std::string& target,
                  const std::string& body) const {
    auto answer = call_http({.host = "127.0.0.1",
                             .port = port(),
                             .method = method,
                             .target = target,
                             .body = body,
                             .timeout = std::chrono::seconds(30)});
    REQUIRE_MESSAGE(answer.ok(), answer.error().message);
    return std::move(answer.value());
  }

  std::unique_ptr<Router> router_;
  std::thread thread_;
};

}  // namespace lockstep
