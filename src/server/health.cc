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

JsonObject pair_object(const PairStatus& pair) {
  return {{"a", pair.times.a},
          {"b", pair.times.b},
          {"path", link_path_name(pair.use.path)},
          {"rails", pair.use.rails},
          {"tcp_rails", pair.use.tcp_rails},
          {"encrypted", pair.use.is_encrypted},
          {"reason", pair.use.reason},
          {"p50_us", pair.times.p50_us},
          {"p99_us", pair.times.p99_us},
          {"gbit_s", pair.times.gbit_s}};
}

JsonObject status_object(const ModelStatus& status) {
  JsonArray ranks;
  for (const RankStatus& rank : status.ranks) {
    ranks.push_back(JsonObject{{"rank", rank.rank},
                               {"pid", rank.pid},
                               {"weight_bytes", rank.weight_bytes},
                               {"read_bytes", rank.read_bytes},
                               {"token_bytes", rank.token_bytes},
                               {"state_bytes", rank.state_bytes}});
  }
  JsonArray links;
  for (const PairStatus& pair : status.links) links.push_back(pair_object(pair));
  return {{"name", status.name},
          {"state", model_state_name(status.state)},
          {"restarts", status.restarts},
          {"last_error", status.last_error},
          {"epoch", status.epoch},
          {"late_frames", status.late_calls + status.late_frames},
          {"late_calls", status.late_calls},
          {"link", status.link},
          {"stages", status.stages},
          {"threads", status.threads},
          {"context", status.context},
          {"running", status.running},
          {"ranks", std::move(ranks)},
          {"links", std::move(links)}};
}

}  // namespace

HttpResponse health(const ApiContext& context) {
  if (context.models().empty()) return not_ready("failed", "no model is loaded");
  for (const auto& model : context.models()) {
    if (model->status().state == ModelStatus::State::kReady) {
      return {200, "application/json", dump_json(JsonObject{{"status", "ok"}}), {}};
    }
  }
  const ModelStatus status = context.models().front()->status();
  return not_ready(model_state_name(status.state),
                   status.last_error.empty()
                       ? "the model \"" + status.name + "\" is " + model_state_name(status.state)
                       : status.last_error);
}

HttpResponse cluster_status(const ApiContext& context) {
  JsonArray models;
  for (const auto& model : context.models()) models.push_back(status_object(model->status()));
  JsonObject status{{"version", context.version()}, {"models", std::move(models)}};
  if (const auto power_w = context.power_w()) status["power_w"] = *power_w;
  return {200, "application/json", dump_json(status), {{"Cache-Control", "no-store"}}};
}

}  // namespace lockstep
