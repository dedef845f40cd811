// An HTTP server on its own thread for the duration of a test.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "net/http/http_server.h"

namespace lockstep {

class Serving {
 public:
  explicit Serving(HttpServer::Handler handler)
      : server_(std::move(HttpServer::listen("localhost", 0, {}, std::move(handler)).value())),
        thread_([this] { server_->run(); }) {}
  ~Serving() {
    server_->stop();
    thread_.join();
  }
  uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace lockstep
