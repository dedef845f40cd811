#include "server/operations/cluster_status.h"

#include <algorithm>
#include <utility>

#include "hub/model_cache.h"
#include "server/generation/api_context.h"
#include "server/generation/model_json.h"
#include "server/operations/disk_routes.h"
#include "server/operations/own_node.h"
#include "server/request/fresh_json.h"

namespace lockstep {
namespace {

// How much of a hub model is on this node's disk, perhaps only a share. Null: nothing, or the model
// is a path.
Json disk_json(const DesiredEntry& entry) {
  const auto settings = hub_settings_from_environment();
  const auto id = parse_model_id(entry.path);
  if (!settings.ok() || !id.ok()) return nullptr;
  const auto there = find_on_disk(settings.value(), id.value());
  if (!there) return nullptr;
  return JsonObject{{"size_bytes", there->size_bytes}, {"whole_bytes", there->whole_bytes}};
}

// Ranks of this machine's own groups; a placement names those of the cluster's.
void name_own_node(JsonObject& model, const ClusterReport& report) {
  const auto self = std::find_if(report.nodes.begin(), report.nodes.end(),
                                 [](const ClusterNodeReport& node) { return node.is_self; });
  if (self == report.nodes.end()) return;
  for (Json& rank : model["ranks"].as_array()) rank.as_object()["node"] = self->id.text();
}

// Models that this node serves, and models that the cluster wants and this node does not serve yet.
JsonArray models_json(const ModelServices& services, const ClusterReport& report) {
  const auto add_place = [&](JsonObject& model, const ClusterModelReport& placed,
                             const ModelStatus& status) {
    add_placement(model, placed, report, status);
    model["disk"] = disk_json(placed.entry);
  };
  JsonArray models;
  std::vector<std::string> names;
  for (const auto& service : services) {
    const ModelStatus status = service->status();
    JsonObject model = status_json(status);
    const auto placed =
        std::find_if(report.models.begin(), report.models.end(),
                     [&](const ClusterModelReport& one) { return one.entry.name == status.name; });
    placed != report.models.end() ? add_place(model, *placed, status)
                                  : name_own_node(model, report);
    models.push_back(std::move(model));
    names.push_back(status.name);
  }
  for (const ClusterModelReport& placed : report.models) {
    if (std::find(names.begin(), names.end(), placed.entry.name) != names.end()) continue;
    ModelStatus status;
    status.name = placed.entry.name;
    JsonObject model = status_json(status);
    add_place(model, placed, status);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

ClusterReport look_at_cluster(const ApiContext& context) {
  if (context.cluster() != nullptr) return context.cluster()->report();
  ClusterReport report;
  report.nodes.push_back(own_node(context));
  return report;
}

JsonObject status_members(const ApiContext& context, const ClusterReport& report) {
  JsonArray nodes;
  for (const ClusterNodeReport& node : report.nodes) nodes.push_back(node_json(node));
  JsonObject status{{"version", context.version()},
                    {"nodes", std::move(nodes)},
                    {"models", models_json(context.models(), report)},
                    {"pulls", pulls_json(context)}};
  if (const auto power_w = context.power_w()) status["power_w"] = *power_w;
  if (context.cluster() == nullptr) return status;
  status["cluster"] = report.cluster;
  status["strangers_refused"] = report.strangers_refused;
  status["beacon_problem"] = report.beacon_problem;
  return status;
}

JsonArray pins_json(const ClusterReport& report) {
  JsonArray pins;
  for (const ClusterReport::Pin& pin : report.pins) {
    pins.push_back(JsonObject{{"name", pin.name}, {"address", pin.address}, {"pin", pin.pin}});
  }
  return pins;
}

HttpResponse cluster_status(const ApiContext& context, const HttpRequest& request) {
  const ClusterReport report = look_at_cluster(context);
  const bool has_control = context.access().check_control(request).ok();
  JsonObject status = status_members(context, report);
  status["control"] = has_control;
  status["happened"] = context.events().happened();
  if (context.cluster() != nullptr && has_control) status["pins"] = pins_json(report);
  return fresh_json(dump_json(status));
}

}  // namespace lockstep
