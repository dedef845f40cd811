#include "server/operations/health.h"

#include <fmt/core.h>

#include <utility>

#include "json/json.h"
#include "server/generation/api_context.h"

namespace lockstep {
namespace {

HttpResponse not_ready(const std::string& state, const std::string& reason) {
  return {503,
          "application/json",
          dump_json(JsonObject{{"status", state}, {"reason", reason}}),
          {{"Retry-After", "1"}}};
}

}  // namespace

HttpResponse health(const ApiContext& context, const HttpRequest& request) {
  return health(context, request, context.oldest_busy());
}

HttpResponse health(const ApiContext& context, const HttpRequest& request,
                    std::chrono::nanoseconds oldest_busy) {
  if (oldest_busy > kStuckAfter) {
    return not_ready(
        "stuck", fmt::format("reading a request has taken {} s and does not end: restart this node",
                             oldest_busy / std::chrono::seconds(1)));
  }
  const ModelServices models = context.models();
  if (models.empty()) return not_ready("failed", "no model is loaded");
  for (const auto& model : models) {
    if (model->status().state == ModelStatus::State::kReady) {
      return {200, "application/json", dump_json(JsonObject{{"status", "ok"}}), {}};
    }
  }
  const ModelStatus status = models.front()->status();
  const std::string state = model_state_name(status.state);
  if (!context.access().may_look(request)) return not_ready(state, "no model is ready");
  return not_ready(state, status.last_error.empty()
                              ? "the model \"" + status.name + "\" is " + state
                              : status.last_error);
}

}  // namespace lockstep
