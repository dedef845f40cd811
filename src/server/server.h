// Server: the public HTTP API over loaded models. `lockstep serve` starts one; the models outlive
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"
#include "node/model_service.h"

namespace lockstep {

struct ServerOptions {
  std::string host = "localhost";
  uint16_t port = 8600;            // 0 picks one
  HttpServer::Limits limits = {};  // error_body is set by the server
  std::string version = "0.1.0";
  // A stream that has been silent so long (a long prompt) gets an empty delta, so that nobody gives
  // it up.
  std::chrono::milliseconds silence_max{15'000};
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(ServerOptions options,
                                               std::vector<std::shared_ptr<ModelService>> models);
  ~Server();
  uint16_t port() const;
  // Serves on the calling thread until stop(), which any thread may call.
  void run();
  void stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
