// Server: the public HTTP API over loaded models, and over the cluster that they run on.
// `lockstep serve` starts one; the models and the cluster outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/power_meter.h"
#include "base/result.h"
#include "net/http_server.h"
#include "node/cluster_control.h"
#include "node/model_directory.h"
#include "server/access_control.h"

namespace lockstep {

struct ServerOptions {
  std::string host = "localhost";
  uint16_t port = 8600;            // 0 picks one
  HttpServer::Limits limits = {};  // error_body is set by the server
  std::string version = "0.1.0";
  // A stream that has been silent so long (a long prompt) gets an empty delta, so that nobody gives
  // it up.
  std::chrono::milliseconds silence_max{15'000};
  AccessOptions access = {};
  std::string claude_model = {};  // that claude-* means in Anthropic's API; empty: the only one
  int draft_tokens = 0;           // guessed at most in a step of an answer (engine/engine.h)
  std::shared_ptr<PowerGauge> power = nullptr;  // what the status says of it; null: nothing
};

class Server {
 public:
  // `cluster` is null where this machine serves alone. kInvalidArgument where other machines would
  // be let in and nothing says that they may.
  static Result<std::unique_ptr<Server>> start(ServerOptions options,
                                               std::shared_ptr<ModelDirectory> models,
                                               ClusterControl* cluster);
  // Models that stay, and no cluster.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, ModelServices models);
  ~Server();
  uint16_t port() const;
  // Serves on the calling thread until one of the following, which any thread may call and
  // net/http_server.h describes.
  void run();
  void stop();
  void drain(std::chrono::milliseconds limit);
  void stop_now();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
