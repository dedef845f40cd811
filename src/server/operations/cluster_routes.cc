#include "server/operations/cluster_routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cluster/state/model_names.h"
#include "node/models/model_name.h"
#include "server/generation/api_context.h"
#include "server/operations/load_request.h"
#include "server/request/fresh_json.h"
#include "server/request/named_node.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

ApiResult<ClusterControl*> cluster_for(const ApiContext& context) {
  if (context.cluster() != nullptr) return context.cluster();
  return ApiError{409, "this node serves alone and is in no cluster: start it without --alone", "",
                  "no_cluster"};
}

// Errors of control calls are the request's fault, except when the cluster is not ready.
ApiResult<Ok> checked(const Status& status) {
  if (status.ok()) return Ok{};
  ApiError error = to_api_error(status.error());
  if (status.error().code == ErrorCode::kPeerLost) error.code = "cluster_not_ready";
  return error;
}

ApiResult<JsonObject> load(ApiContext& context, const HttpRequest& request) {
  ClusterControl* const cluster = TRY(cluster_for(context));
  DesiredEntry entry = TRY(parse_load_request(request.body, cluster->report()));
  JsonObject answer{{"model", entry.name}, {"path", entry.path}};
  TRY(checked(cluster->load(std::move(entry))));
  return answer;
}

// The name of the desired model: given by the name itself, an alias, or the model's path.
ApiResult<std::string> wanted_name(const ClusterReport& report, const std::string& asked) {
  DesiredState desired;
  for (const ClusterModelReport& model : report.models) desired.merge(model.entry);
  const ModelName found = find_model(desired, asked);
  if (found.entry != nullptr) return found.entry->name;
  const ModelName by_path = find_model(desired, model_name_of(asked));
  if (by_path.entry != nullptr) return by_path.entry->name;
  return ApiError{404, no_such_model(asked, found), "model", "model_not_found"};
}

ApiResult<JsonObject> unload(ApiContext& context, const HttpRequest& request) {
  ClusterControl* const cluster = TRY(cluster_for(context));
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const auto asked = TRY(fields.text("model"));
  if (!asked || asked->empty()) {
    return missing_field("model");
  }
  TRY(fields.refuse_ignored());
  const ClusterReport report = cluster->report();
  auto name = wanted_name(report, *asked);
  if (!name.ok()) {
    // A request finds a model also by a name in other letters; unloading wants the exact one.
    const auto served = model_named(context.models(), *asked);
    if (served == nullptr || wanted_name(report, served->status().name).ok()) return name.error();
    return bad_field("model", fmt::format("the model \"{}\" belongs to this node, not to the "
                                          "cluster: it ends with the node",
                                          *asked));
  }
  TRY(checked(cluster->unload(name.value())));
  return JsonObject{{"model", name.value()}};
}

const ClusterNodeReport* find_node(const ClusterReport& report, const NodeId& id) {
  for (const ClusterNodeReport& node : report.nodes) {
    if (node.id == id) return &node;
  }
  return nullptr;
}

ApiResult<JsonObject> restart(ApiContext& context, const HttpRequest& request) {
  ClusterControl* const cluster = TRY(cluster_for(context));
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const auto name = TRY(fields.text("node"));
  if (!name || name->empty()) {
    return missing_field("node");
  }
  TRY(fields.refuse_ignored());
  const ClusterReport report = cluster->report();
  const NodeId id = TRY(node_named(report, *name, "node"));
  const ClusterNodeReport* const node = find_node(report, id);
  TRY(checked(cluster->restart(id)));
  return JsonObject{{"node", id.text()}, {"life", node->life}};
}

ApiResult<JsonObject> token(ApiContext& context) {
  ClusterControl* const cluster = TRY(cluster_for(context));
  auto made = cluster->make_join_token();
  if (!made.ok()) return to_api_error(made.error());
  return JsonObject{{"token", made.value()}};
}

}  // namespace

void serve_cluster_load(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, load(context, request));
}

void serve_cluster_unload(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, unload(context, request));
}

void serve_cluster_restart(ApiContext& context, const HttpRequest& request,
                           const HttpReply& reply) {
  send_fresh(reply, restart(context, request));
}

void serve_cluster_token(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  send_fresh(reply, token(context));
}

}  // namespace lockstep
