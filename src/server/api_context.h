// ApiContext: what every route of the public API works with: the models, by the names that clients
// use, the cluster, and the housekeeper. Immutable after construction except for the models' own
// state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/power_meter.h"
#include "chat/sampled_calls.h"
#include "net/http_server.h"
#include "node/cluster_control.h"
#include "node/model_directory.h"
#include "server/access_control.h"
#include "server/errors.h"
#include "server/generation.h"
#include "server/generation_options.h"
#include "server/openai_answer.h"
#include "server/request_metrics.h"
#include "server/request_workers.h"

namespace lockstep {

struct ApiSettings {
  std::string version;
  std::chrono::milliseconds silence_max;
  int draft_tokens = 0;               // guessed at most in a step of an answer
  std::string claude_model;           // that claude-* means in Anthropic's API; empty: the only one
  std::shared_ptr<PowerGauge> power;  // null: not measured
};

class ApiContext {
 public:
  // `cluster` outlives this; null: this machine serves alone.
  ApiContext(std::shared_ptr<ModelDirectory> models, ClusterControl* cluster, ApiSettings settings,
             std::unique_ptr<AccessControl> access);

  ModelServices models() const { return models_->models(); }
  ClusterControl* cluster() const { return cluster_; }
  const std::string& version() const { return settings_.version; }
  const std::string& claude_model() const { return settings_.claude_model; }
  int64_t created() const { return created_; }  // Unix seconds
  // Of this machine; nullopt where it has no meter.
  std::optional<double> power_w() const {
    return settings_.power ? settings_.power->watts() : std::nullopt;
  }

  const RequestMetrics& metrics() const { return *metrics_; }
  // On the HTTP server's thread.
  AccessControl& access() const { return *access_; }

  // As ModelDirectory::find(): 400 where a name is needed, 404 for an unknown one.
  ApiResult<std::shared_ptr<ModelService>> find_model(std::string_view name) const;
  // The same, and it has not ended for good (503 otherwise) and can read text.
  ApiResult<std::shared_ptr<ModelService>> find_ready_model(std::string_view name) const;

  // As ModelDirectory has them, by a model's own name.
  bool is_on_demand(std::string_view name) const { return models_->is_on_demand(name); }
  void keep(std::string_view name, std::chrono::milliseconds time) { models_->keep(name, time); }

  // Calls that models wrote for this node's clients; answers may outlive this.
  const std::shared_ptr<SampledCalls>& sampled_calls() const { return sampled_calls_; }

  // Where long requests are read.
  RequestWorkers& workers() { return workers_; }
  // Where the cluster is asked, which may take seconds; null without one.
  RequestWorkers* cluster_workers() { return cluster_workers_.get(); }
  // For work that must not run on the thread of an event; it ends with the server.
  std::weak_ptr<Housekeeper> housekeeper() const { return housekeeper_; }

  // The answer is what `sink` makes of it.
  void generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                const GenerationOptions& options, std::unique_ptr<GenerationSink> sink,
                const HttpReply& reply);
  void generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                const OpenAiFormat& format, ChoiceWriters choices, const GenerationOptions& options,
                const HttpReply& reply);

 private:
  const std::shared_ptr<ModelDirectory> models_;
  ClusterControl* const cluster_;
  const ApiSettings settings_;
  const int64_t created_;
  const std::unique_ptr<AccessControl> access_;
  const std::shared_ptr<RequestMetrics> metrics_ = std::make_shared<RequestMetrics>();
  const std::shared_ptr<Housekeeper> housekeeper_;
  const std::shared_ptr<SampledCalls> sampled_calls_ = std::make_shared<SampledCalls>();
  // Last: their work uses all of the above.
  RequestWorkers workers_;
  std::unique_ptr<RequestWorkers> cluster_workers_;
};

const char* model_state_name(ModelStatus::State state);

// 400 context_length_exceeded unless at least one token fits behind the prompt; 400 if it is empty.
ApiResult<Ok> check_prompt(const std::vector<int32_t>& prompt, const ModelStatus& status,
                           std::string_view param);

}  // namespace lockstep
