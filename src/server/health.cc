#include "server/health.h"

#include <utility>

#include "json/json.h"
#include "server/api_context.h"

namespace lockstep {
namespace {

HttpResponse not_ready(const char* state, const std::string& reason) {
  return {503,
          "application/json",
          dump_json(JsonObject{{"status", state}, {"reason", reason}}),
          {{"Retry-After", "1"}}};
}

}  // namespace

HttpResponse health(const ApiContext& context) {
  const ModelServices models = context.models();
  if (models.empty()) return not_ready("failed", "no model is loaded");
  for (const auto& model : models) {
    if (model->status().state == ModelStatus::State::kReady) {
      return {200, "application/json", dump_json(JsonObject{{"status", "ok"}}), {}};
    }
  }
  const ModelStatus status = models.front()->status();
  return not_ready(model_state_name(status.state),
                   status.last_error.empty()
                       ? "the model \"" + status.name + "\" is " + model_state_name(status.state)
                       : status.last_error);
}

}  // namespace lockstep
