#include "planner/plan_json.h"

#include <utility>

#include "planner/explain.h"

namespace lockstep {
namespace {

Json known_or_null(double value) {
  return value > 0 ? Json(value) : Json();
}

Json rank_json(const ClusterFacts& cluster, const PlacedGroup& group, size_t index) {
  const PlacedGroup::Rank& rank = group.ranks[index];
  const Machine& machine = cluster.machines[rank.machine];
  const size_t ranks = group.ranks.size() / static_cast<size_t>(group.stages);
  return JsonObject{{"machine", machine.name},
                    {"share", rank.share},
                    {"stage", index / ranks},
                    {"layers", JsonArray{rank.layers.begin, rank.layers.end}},
                    {"subtrees", rank.subtrees},
                    {"weight_bytes", rank.memory.weight_bytes},
                    {"packed_bytes", rank.memory.packed_bytes},
                    {"state_bytes", rank.memory.state_bytes},
                    {"buffer_bytes", rank.memory.buffer_bytes},
                    {"process_bytes", rank.memory.process_bytes},
                    {"memory_bytes", rank.memory.total()},
                    {"available_bytes", machine.memory_bytes}};
}

Json placement_json(const ClusterFacts& cluster, const PlannedPlacement& plan) {
  JsonArray groups;
  for (const PlacedGroup& group : plan.placement.groups) {
    JsonArray ranks;
    for (size_t i = 0; i < group.ranks.size(); ++i) ranks.push_back(rank_json(cluster, group, i));
    groups.push_back(JsonObject{{"stages", group.stages}, {"ranks", std::move(ranks)}});
  }
  const StepTime& token = plan.token;
  JsonObject json{{"kind", placement_kind_name(plan.placement.kind)},
                  {"machines", plan.placement.machine_count()},
                  {"fits", plan.misfits == 0},
                  {"decode_tok_s", plan.decode_tok_s},
                  {"decode_tok_s_short", plan.short_tok_s},
                  {"total_tok_s", plan.total_tok_s},
                  {"draft_tok_s", known_or_null(plan.draft_tok_s)},
                  {"first_token_s", known_or_null(plan.first_token_s)},
                  {"joule_per_token", known_or_null(plan.joule_per_token)},
                  {"price_usd", known_or_null(plan.price_usd)},
                  {"has_estimates", plan.has_estimates},
                  {"token_us", JsonObject{{"weights", token.weights},
                                          {"state", token.state},
                                          {"kernels", token.kernels},
                                          {"compute", token.compute},
                                          {"exchange", token.exchange},
                                          {"hops", token.hops}}},
                  {"groups", std::move(groups)}};
  if (plan.misfits > 0) json["problem"] = lack_text(cluster, plan);
  return json;
}

}  // namespace

Json plan_json(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan) {
  JsonArray placements, refused;
  for (const PlannedPlacement& fitting : plan.fitting) {
    placements.push_back(placement_json(cluster, fitting));
  }
  for (const PlannedPlacement& other : plan.refused) {
    refused.push_back(placement_json(cluster, other));
  }
  const PlanRequest& request = subject.request;
  return JsonObject{
      {"model", subject.model},
      {"format", subject.format.empty() ? Json() : Json(subject.format)},
      {"context", request.limits.context},
      {"streams", request.limits.streams},
      {"kv", kv_kind_name(request.limits.kv)},
      {"prompt_tokens", request.prompt_tokens},
      {"draft_right", request.draft_right},
      {"draft_model", subject.draft_model.empty() ? Json() : Json(subject.draft_model)},
      {"choice", plan.fitting.empty() ? Json() : placement_json(cluster, plan.fitting.front())},
      {"explanation", plan.explanation},
      {"placements", std::move(placements)},
      {"refused", std::move(refused)}};
}

}  // namespace lockstep
