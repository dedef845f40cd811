// ApiContext: what every route of the public API works with: the models, by the names that clients
// use, and the housekeeper. Immutable after construction except for the models' own state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"
#include "node/model_service.h"
#include "server/errors.h"
#include "server/generation.h"
#include "server/generation_options.h"
#include "server/node_power.h"
#include "server/openai_answer.h"
#include "server/request_workers.h"

namespace lockstep {

class ApiContext {
 public:
  ApiContext(std::vector<std::shared_ptr<ModelService>> models, std::string version,
             std::chrono::milliseconds silence_max);

  const std::vector<std::shared_ptr<ModelService>>& models() const { return models_; }
  const std::string& version() const { return version_; }
  int64_t created() const { return created_; }  // Unix seconds
  // Of this machine; nullopt where it has no meter.
  std::optional<double> power_w() const { return power_->watts(); }

  // By its exact name, else regardless of case, else by the last component of a path if that is
  // unambiguous. An empty name means the only model.
  ApiResult<std::shared_ptr<ModelService>> find_model(std::string_view name) const;
  // The same, and it has not ended for good (503 otherwise) and can read text.
  ApiResult<std::shared_ptr<ModelService>> find_ready_model(std::string_view name) const;

  // Where long requests are read.
  RequestWorkers& workers() { return workers_; }
  // For work that must not run on the thread of an event; it ends with the server.
  std::weak_ptr<Housekeeper> housekeeper() const { return housekeeper_; }

  void generate(const std::shared_ptr<ModelService>& model, GenerationPlan plan,
                const OpenAiFormat& format, const GenerationOptions& options,
                const HttpReply& reply);

 private:
  const std::vector<std::shared_ptr<ModelService>> models_;
  const std::string version_;
  const std::chrono::milliseconds silence_max_;
  const int64_t created_;
  const std::unique_ptr<NodePower> power_ = std::make_unique<NodePower>();
  const std::shared_ptr<Housekeeper> housekeeper_;
  RequestWorkers workers_;  // last: their work uses all of the above
};

const char* model_state_name(ModelStatus::State state);

// 400 context_length_exceeded unless at least one token fits behind the prompt; 400 if it is empty.
ApiResult<Ok> check_prompt(const std::vector<int32_t>& prompt, const ModelStatus& status,
                           std::string_view param);

}  // namespace lockstep
