#include "server/operations/cluster_requests.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "json/json.h"
#include "server/generation/api_context.h"
#include "server/operations/cluster_status.h"
#include "server/request/errors.h"
#include "server/request/fresh_json.h"

namespace lockstep {
namespace {

std::string_view phase_name(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kWaiting:
      return "waiting";
    case RequestPhase::kPrompt:
      return "prompt";
    case RequestPhase::kAnswer:
      return "answer";
    case RequestPhase::kPaused:
      return "paused";
  }
  return "waiting";
}

JsonObject figures_json(const RequestFigures& figures) {
  const auto age = std::chrono::steady_clock::now() - figures.began;
  JsonObject json{{"id", figures.id},
                  {"model", figures.model},
                  {"phase", phase_name(figures.phase)},
                  {"prompt_tokens", figures.prompt_tokens},
                  {"tokens", figures.tokens},
                  {"age_s", std::chrono::duration<double>(age).count()},
                  {"route", figures.route}};
  if (figures.prompt_done) json["prompt_done"] = *figures.prompt_done;
  return json;
}

std::string self_id(const ApiContext& context) {
  for (const ClusterNodeReport& node : look_at_cluster(context).nodes) {
    if (node.is_self) return node.id.text();
  }
  return "";
}

// Callers without a key share an address.
bool is_own(const RequestFigures& figures, const HttpReply& reply) {
  return figures.caller != 0 && figures.caller == reply.caller();
}

ApiResult<JsonObject> cancel(const ApiContext& context, const HttpRequest& request,
                             const HttpReply& reply) {
  const std::string_view id = std::string_view(request.path).substr(kRequestsPrefix.size());
  const auto running = context.running_requests().find(id);
  const auto figures = running == nullptr ? std::nullopt : running->figures();
  if (!figures) {
    return ApiError{404, "there is no such request in progress: it may have ended", "",
                    "request_not_found"};
  }
  if (!is_own(*figures, reply)) TRY(context.access().check_control(request));
  running->stop();
  return JsonObject{{"id", id}};
}

}  // namespace

void serve_cluster_requests(ApiContext& context, const HttpRequest& request,
                            const HttpReply& reply) {
  const bool has_control = context.access().check_control(request).ok();
  const std::string node = self_id(context);
  std::map<std::string, int> places;  // the last one of each model
  JsonArray list;
  for (const RequestFigures& figures : context.running_requests().list()) {
    JsonObject json = figures_json(figures);
    if (!node.empty()) json["node"] = node;
    if (figures.phase == RequestPhase::kWaiting) json["place"] = ++places[figures.model];
    json["own"] = is_own(figures, reply);
    if (has_control || is_own(figures, reply)) json["client"] = figures.client;
    list.push_back(std::move(json));
  }
  reply.send(fresh_json(dump_json(JsonObject{{"requests", std::move(list)}})));
}

void serve_request_cancel(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, cancel(context, request, reply));
}

}  // namespace lockstep
