// ApiContext: shared by all routes of the public API: the models by the names that clients use, the
// cluster, and the housekeeper. Immutable after construction except for the models' own state.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/access_control.h"
#include "access/request_workers.h"
#include "base/machine/power_meter.h"
#include "base/meters/machine_gauge.h"
#include "chat/calls/sampled_calls.h"
#include "net/http/http_server.h"
#include "node/cluster/cluster_control.h"
#include "node/cluster/what_if.h"
#include "node/disks/model_desk.h"
#include "node/models/model_directory.h"
#include "server/events/event_hub.h"
#include "server/generation/generation.h"
#include "server/generation/generation_options.h"
#include "server/generation/openai_answer.h"
#include "server/page/page_file.h"
#include "server/request/demo_plug.h"
#include "server/request/errors.h"
#include "server/request/request_metrics.h"
#include "server/request/running_requests.h"
#include "server/request/slow_answer.h"
#include "server/streams/kept_streams.h"

namespace lockstep {

struct ApiSettings {
  std::string version;
  std::chrono::milliseconds silence_max;
  int draft_tokens = 0;               // speculated per step, at most
  std::string claude_model;           // what claude-* means in Anthropic's API; empty: the only one
  std::shared_ptr<PowerGauge> power;  // null: not measured
  std::shared_ptr<MachineGauge> machine = nullptr;  // likewise
  int64_t budget_bytes = 0;  // without a cluster: memory that models may use; 0: unknown
  std::optional<NodeOffer> own_offer = {};  // without a cluster: where models compute on a GPU
  ModelDesk* desk = nullptr;                // outlives the server; null: none
  StreamLimits streams = {};
  PageFiles page = {};  // empty: the plain page
  // Models of this machine's own groups: name -> path, or name of a hub.
  std::map<std::string, std::string> own_paths = {};
  KillWorker kill_worker = {};  // for `serve --demo`; empty: not allowed
  std::string program = {};     // starts lockstep; empty: the doctor tests no GPUs
};

// Where OpenAI's answers go.
struct AnswerTarget {
  HttpReply reply;
  std::shared_ptr<KeptStream> kept;  // null: the answer ends when its client leaves
};

// The plan with everything that the options say.
GenerationPlan complete_plan(GenerationPlan plan, const GenerationOptions& options,
                             const ModelService& model);

class ApiContext {
 public:
  // `cluster` outlives this; null: this machine serves without a cluster.
  ApiContext(std::shared_ptr<ModelDirectory> models, ClusterControl* cluster, ApiSettings settings,
             std::unique_ptr<AccessControl> access);

  // Why there are no receipts of the model's answers.
  static ApiError no_identity(const ModelStatus& status);

  ModelServices models() const { return models_->models(); }
  ClusterControl* cluster() const { return cluster_; }
  const std::string& version() const { return settings_.version; }
  const std::string& claude_model() const { return settings_.claude_model; }
  int64_t created() const { return created_; }  // Unix seconds
  // This machine's power; nullopt if it has no meter.
  std::optional<double> power_w() const {
    return settings_.power ? settings_.power->watts() : std::nullopt;
  }

  PageFiles page() const { return settings_.page; }
  // ApiSettings::own_paths.
  const std::map<std::string, std::string>& own_paths() const { return settings_.own_paths; }
  // Null without `serve --demo`.
  DemoPlug* demo() const { return demo_.get(); }
  // Models on disks; null: this server has none.
  ModelDesk* desk() const { return settings_.desk; }
  // ApiSettings::program.
  const std::string& program() const { return settings_.program; }
  // This machine as a place for models, without a cluster.
  OwnOffer& own_offer() { return own_offer_; }
  // The doctor's findings, which several callers may wait for.
  SlowAnswer& examination() { return examination_; }
  // This machine's meters, empty if they are not measured.
  MachineMeters machine_meters() const {
    return settings_.machine ? settings_.machine->meters() : MachineMeters{};
  }
  // Memory that models may use, without a cluster; 0: unknown.
  int64_t budget_bytes() const { return settings_.budget_bytes; }

  const RequestMetrics& metrics() const { return *metrics_; }
  // On the HTTP server's thread, except where its header says otherwise.
  AccessControl& access() const { return *access_; }

  // Like ModelDirectory::find(): 400 if a name is needed, 404 for an unknown one.
  ApiResult<std::shared_ptr<ModelService>> find_model(std::string_view name) const;
  // The same, on a worker's thread: waits a while for files of the model that are being fetched.
  // 503 if the model has failed or stopped for good, 400 if it has no tokenizer.
  ApiResult<std::shared_ptr<ModelService>> find_ready_model(std::string_view name) const;

  // As in ModelDirectory, by the model's own name.
  bool is_on_demand(std::string_view name) const { return models_->is_on_demand(name); }
  void keep(std::string_view name, std::chrono::milliseconds time) { models_->keep(name, time); }

  // Calls that models wrote for this node's clients; answers may outlive this.
  const std::shared_ptr<SampledCalls>& sampled_calls() const { return sampled_calls_; }

  // The answers in progress.
  RunningRequests& running_requests() const { return *running_requests_; }

  // They parse long requests.
  RequestWorkers& workers() { return workers_; }
  // They call the cluster, which may take seconds; null without a cluster.
  RequestWorkers* cluster_workers() { return cluster_workers_.get(); }
  // For what may take seconds without computing: other nodes' disks, the hub, the doctor.
  RequestWorkers& slow_workers() { return slow_workers_; }
  // Over the two pools in front of it.
  RequestWorkers::Clock::duration oldest_busy() const;
  size_t waiting_to_be_read() const { return workers_.waiting(); }
  // The streams of GET /cluster/events; replies may outlive this.
  EventHub& events() const { return *events_; }
  // The streams that outlive their reader.
  KeptStreams& streams() const { return *streams_; }

  // For work that must not run on an event's thread; it ends with the server.
  std::weak_ptr<Housekeeper> housekeeper() const { return housekeeper_; }

  // `sink` writes the answer.
  void generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                const GenerationOptions& options, std::unique_ptr<GenerationSink> sink,
                const AnswerTarget& target);
  void generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                const OpenAiFormat& format, ChoiceWriters choices, const GenerationOptions& options,
                const AnswerTarget& target);

 private:
  const std::shared_ptr<ModelDirectory> models_;
  ClusterControl* const cluster_;
  const ApiSettings settings_;
  const int64_t created_;
  const std::unique_ptr<AccessControl> access_;
  const std::shared_ptr<RequestMetrics> metrics_ = std::make_shared<RequestMetrics>();
  const std::shared_ptr<EventHub> events_;
  const std::shared_ptr<RunningRequests> running_requests_ = std::make_shared<RunningRequests>();
  const std::shared_ptr<KeptStreams> streams_;
  const std::shared_ptr<Housekeeper> housekeeper_;
  const std::shared_ptr<SampledCalls> sampled_calls_ = std::make_shared<SampledCalls>();
  const std::unique_ptr<DemoPlug> demo_;
  OwnOffer own_offer_{settings_.own_offer};
  SlowAnswer examination_;
  // Last: their jobs use all of the above.
  RequestWorkers workers_;
  RequestWorkers slow_workers_{RequestWorkers::kThreadsMin};
  std::unique_ptr<RequestWorkers> cluster_workers_;
};

const char* model_state_name(ModelStatus::State state);

// Sums of one request. 400 unless `choices` copies of a prompt of this size, and of its echo, still
// fit.
struct PlanSize {
  size_t tokens = 0;
  size_t echo_bytes = 0;

  ApiResult<Ok> add(size_t choices, size_t prompt_tokens, size_t prompt_echo_bytes);
};

// 400 context_length_exceeded unless at least one token fits after the prompt; 400 if it is empty;
// calls check_work() for the caller, who has just encoded the prompt.
ApiResult<Ok> check_prompt(const std::vector<int32_t>& prompt, const ModelStatus& status,
                           std::string_view param);

}  // namespace lockstep
