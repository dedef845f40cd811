// An HTTP server with the test's limits, on its own thread for the duration of the test.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "net/http/http_server.h"

namespace lockstep {

class Running {
 public:
  explicit Running(HttpServer::Handler handler, HttpServer::Limits limits = {}) {
    if (!limits.error_body) {
      limits.error_body = [](int status, std::string_view message, std::string_view path) {
        return std::to_string(status) + ":" + std::string(path) + ":" + std::string(message);
      };
    }
    auto server = HttpServer::listen("localhost", 0, std::move(limits), std::move(handler));
    REQUIRE(server.ok());
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Running() { stop(); }
  void stop() {
    server_->stop();
    wait();
  }
  void wait() {  // until it stops on its own
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return server_->port(); }
  HttpServer& server() { return *server_; }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace lockstep
