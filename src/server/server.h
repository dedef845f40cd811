// Server: the public HTTP API of the loaded models and of the cluster that runs them. `lockstep
// serve` starts one; the models and the cluster outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "access/access_control.h"
#include "base/machine/power_meter.h"
#include "base/meters/machine_gauge.h"
#include "base/result.h"
#include "base/version.h"
#include "cluster/brain/plan_function.h"
#include "net/http/http_server.h"
#include "node/cluster/cluster_control.h"
#include "node/disks/model_desk.h"
#include "node/models/model_directory.h"
#include "server/page/page_file.h"
#include "server/request/demo_plug.h"
#include "server/streams/kept_stream.h"

namespace lockstep {

struct ServerOptions {
  std::string host = "localhost";
  uint16_t port = 8600;            // 0 picks one
  HttpServer::Limits limits = {};  // the server sets error_body and admit
  std::string version = kVersion;
  // A stream silent for this long (a long prompt) gets an empty delta, so that clients do not give
  // up.
  std::chrono::milliseconds silence_max{15'000};
  AccessOptions access = {};
  std::string claude_model = {};  // what claude-* means in Anthropic's API; empty: the only one
  int draft_tokens = 0;           // speculated per step, at most (engine/engine.h)
  // Both for the status; null: not measured.
  std::shared_ptr<PowerGauge> power = nullptr;
  std::shared_ptr<MachineGauge> machine = nullptr;
  int64_t budget_bytes = 0;  // without a cluster: memory that models may use; 0: unknown
  std::optional<NodeOffer> own_offer = {};  // without a cluster: where models compute on a GPU
  ModelDesk* desk = nullptr;  // models on disks; outlives the server; null: those routes answer 409
  StreamLimits streams = {};  // of answers that outlive their connection
  PageFiles page = {};        // empty: the plain page
  // Models of this machine's own groups: name -> path, or name of a hub, for plans.
  std::map<std::string, std::string> own_paths = {};
  KillWorker kill_worker = {};  // allows POST /demo/kill; empty: not allowed
  std::string program = {};     // starts lockstep; empty: the doctor tests no GPUs
};

class Server {
 public:
  // `cluster` is null if this machine serves alone. kInvalidArgument if other machines could
  // connect and the options do not allow it.
  static Result<std::unique_ptr<Server>> start(ServerOptions options,
                                               std::shared_ptr<ModelDirectory> models,
                                               ClusterControl* cluster);
  // A fixed set of models, and no cluster.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, ModelServices models);
  ~Server();
  uint16_t port() const;
  // The path of the page with control for a browser on this machine; valid once and briefly. Any
  // thread.
  Result<std::string> make_page_path();
  // Serves on the calling thread until one of the following is called, from any thread; see
  // net/http/http_server.h.
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
