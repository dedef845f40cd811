// Router: an HTTP server in front of independent nodes or groups, which gives each request to one
// of them: by what the request begins with, unless that one is much busier than others
// (router/backend_choice.h). `lockstep router` starts one. It keeps nothing that matters: a router
// that is started anew, or a second one beside it, chooses alike.
//
//   POST /v1/...                  handed on, the answer streamed back
//   GET /v1/models, /v1/models/ID what the backends have, together
//   GET /health                   200 when a backend answers
//   GET /router/status, /metrics  what the router knows, as JSON and as Prometheus reads it
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/frame_connection.h"
#include "net/http_server.h"
#include "router/backends.h"
#include "router/relay.h"

namespace lockstep {

struct RouterOptions {
  std::string host = "localhost";
  uint16_t port = 8700;  // 0 picks one
  std::vector<NetAddress> backends;
  BalanceLimits balance = {};
  PollOptions poll = {};
  RelayLimits relay = {};
  HttpServer::Limits limits = {};       // error_body is set by the router
  int requests_max = 1024;              // under way; further ones get 429
  size_t bodies_bytes_max = 512 << 20;  // of requests under way
  std::string version = "0.1.0";
};

class Router {
 public:
  // kInvalidArgument without backends, with one twice, or where the address cannot be bound.
  static Result<std::unique_ptr<Router>> start(RouterOptions options);
  ~Router();
  uint16_t port() const;
  // Serves on the calling thread until stop(), which any thread may call.
  void run();
  void stop();

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
