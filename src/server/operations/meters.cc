#include "server/operations/meters.h"

#include <utility>

#include "server/generation/api_context.h"

namespace lockstep {
namespace {

// By steps per second: 0 once nothing is counted any more.
double rate(uint64_t before, uint64_t after, double seconds) {
  return after <= before ? 0 : static_cast<double>(after - before) / seconds;
}

JsonArray links_json(const ApiContext& context) {
  JsonArray links;
  for (const auto& model : context.models()) {
    const ModelStatus status = model->status();
    for (const PairStatus& pair : status.links) {
      JsonObject link{{"model", status.name},
                      {"a", pair.times.a},
                      {"b", pair.times.b},
                      {"bytes_s", pair.bytes_s}};
      if (pair.times.p50_us > 0) link["p50_us"] = pair.times.p50_us;
      links.push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace

JsonObject node_meters_json(const ClusterNodeReport& node) {
  JsonObject json{{"node", node.id.text()}};
  const auto add = [&json](std::string_view name, const auto& value) {
    if (value) json[name] = *value;
  };
  add("cpu_percent", node.meters.cpu_percent);
  add("memory_bytes", node.meters.memory_bytes);
  add("memory_used_bytes", node.meters.memory_used_bytes);
  add("process_bytes", node.meters.process_bytes);
  add("temperature_c", node.meters.temperature_c);
  add("power_w", node.power_w);
  add("disk_free_bytes", node.meters.disk_free_bytes);
  return json;
}

JsonObject Meters::look(const ApiContext& context, const ClusterReport& report, Time now) {
  JsonArray nodes;
  for (const ClusterNodeReport& node : report.nodes) {
    // Figures of a node that is gone are old.
    if (node.state == "alive") nodes.push_back(node_meters_json(node));
  }
  JsonArray of_models = models(context, now);
  looked_ = now;
  return {{"nodes", std::move(nodes)},
          {"models", std::move(of_models)},
          {"links", links_json(context)}};
}

JsonArray Meters::models(const ApiContext& context, Time now) {
  const auto counted = context.metrics().models();
  std::map<std::string, Counts> counts;
  JsonArray list;
  for (const auto& model : context.models()) {
    const std::string name = model->status().name;
    const auto found = counted.find(name);
    const ModelRequests requests = found == counted.end() ? ModelRequests{} : found->second;
    JsonObject json{{"name", name}, {"running", requests.decoding}, {"waiting", requests.waiting}};
    const Counts now_counted{requests.generated_tokens, requests.computed_prompt_tokens};
    // The counters of a model that is loaded again go on: what they count was not of this second.
    const auto last = counts_.find(name);
    if (looked_ && now > *looked_ && last != counts_.end()) {
      const double seconds = std::chrono::duration<double>(now - *looked_).count();
      const Counts& before = last->second;
      json["tokens_s"] = rate(before.generated_tokens, now_counted.generated_tokens, seconds);
      json["prompt_tokens_s"] = rate(before.prompt_tokens, now_counted.prompt_tokens, seconds);
    }
    counts[name] = now_counted;
    list.push_back(std::move(json));
  }
  counts_ = std::move(counts);
  return list;
}

}  // namespace lockstep
