// Router: an HTTP server in front of independent nodes or groups, which sends each request to one
// of them: chosen by the request's beginning, unless that one is much busier than others
// (router/backend_choice.h). `lockstep router` starts one. It has no state that matters: a
// restarted or a second router chooses alike.
//
//   POST /v1/...                  forwarded, the answer streamed back
//   GET /v1/models, /v1/models/ID the models of all backends
//   GET /health                   200 when a backend answers
//   GET /router/status, /metrics  the router's state, as JSON and in Prometheus's format
//   GET /version                  the router's version, to check that it runs
//
// access/access_control.h decides who may send requests, as on a node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "access/access_control.h"
#include "base/result.h"
#include "base/version.h"
#include "net/frames/frame_connection.h"
#include "net/http/http_server.h"
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
  HttpServer::Limits limits = {};       // error_body, admit and bodies_bytes_max are the router's
  AccessOptions access = {};            // the router has no control, so no folder for it
  int requests_max = 1024;              // in flight; further ones get 429
  size_t bodies_bytes_max = 512 << 20;  // of requests until they are answered
  std::string version = kVersion;
};

class Router {
 public:
  // kInvalidArgument without backends, with a duplicate, if the address cannot be bound, or if
  // other machines could connect and nothing says that they may.
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
