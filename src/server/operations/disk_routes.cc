#include "server/operations/disk_routes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "server/generation/api_context.h"
#include "server/request/fresh_json.h"
#include "server/request/named_node.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

ClusterReport report_of(const ApiContext& context) {
  return context.cluster() == nullptr ? ClusterReport{} : context.cluster()->report();
}

JsonObject named_json(const ClusterReport& report, const NodeId& id) {
  JsonObject json{{"node", id.text()}};
  for (const ClusterNodeReport& node : report.nodes) {
    if (node.id == id) json["name"] = node.name;
  }
  return json;
}

JsonObject answer_json(const ClusterReport& report, const ModelDesk::NodeDisk& answer) {
  JsonObject json = named_json(report, answer.node);
  if (!answer.disk.ok()) {
    json["sentence"] = "its disk is unknown: " + answer.disk.error().message;
    return json;
  }
  for (auto& entry : disk_json(answer.disk.value())) json[entry.key()] = entry.value();
  return json;
}

// Nodes that are not connected are listed too: their disks may hold what is missed here.
ApiResult<JsonObject> list(ApiContext& context) {
  ModelDesk* const desk = TRY(desk_for(context));
  const auto disks = desk->disks();
  const ClusterReport report = report_of(context);
  JsonArray nodes;
  for (const ModelDesk::NodeDisk& answer : disks) nodes.push_back(answer_json(report, answer));
  for (const ClusterNodeReport& node : report.nodes) {
    const bool was_asked = std::any_of(disks.begin(), disks.end(),
                                       [&](const auto& answer) { return answer.node == node.id; });
    if (was_asked) continue;
    JsonObject json = named_json(report, node.id);
    json["sentence"] = "its disk is unknown: the node is " + node.state;
    nodes.push_back(std::move(json));
  }
  return JsonObject{{"nodes", std::move(nodes)}};
}

ApiResult<std::string> model_in(RequestFields& fields) {
  const auto model = TRY(fields.text("model"));
  if (!model || model->empty()) {
    return missing_field("model");
  }
  return *model;
}

ApiError model_error(const Error& error) {
  ApiError api = to_api_error(error);
  api.param = "model";
  if (error.code == ErrorCode::kNotFound) api.code = "model_not_found";
  if (error.code == ErrorCode::kPeerLost) api.code = "node_lost";
  return api;
}

ApiResult<JsonObject> remove(ApiContext& context, const HttpRequest& request) {
  ModelDesk* const desk = TRY(desk_for(context));
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  const std::string model = TRY(model_in(fields));
  const auto name = TRY(fields.text("node"));
  TRY(fields.refuse_ignored());
  const NodeId node =
      name && !name->empty() ? TRY(node_named(report_of(context), *name, "node")) : desk->self();
  const auto removed = desk->remove(model, node);
  if (!removed.ok()) return model_error(removed.error());
  return JsonObject{{"model", model}, {"node", node.text()}, {"removed_bytes", removed.value()}};
}

// The body of both orders.
ApiResult<std::string> pulled_model(const HttpRequest& request) {
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  std::string model = TRY(model_in(fields));
  TRY(fields.refuse_ignored());
  return model;
}

ApiResult<JsonObject> pull(ApiContext& context, const HttpRequest& request) {
  ModelDesk* const desk = TRY(desk_for(context));
  const std::string model = TRY(pulled_model(request));
  const Status started = desk->pulls().start(model);
  if (!started.ok()) return model_error(started.error());
  return JsonObject{{"model", model}};
}

ApiResult<JsonObject> end_pull(ApiContext& context, const HttpRequest& request) {
  ModelDesk* const desk = TRY(desk_for(context));
  const std::string model = TRY(pulled_model(request));
  const Status stopped = desk->pulls().stop(model);
  if (!stopped.ok()) return model_error(stopped.error());
  return JsonObject{{"model", model}};
}

JsonObject pull_json(const ModelPull& pull) {
  JsonObject json{{"model", pull.model},
                  {"phase", pull_phase_name(pull.phase)},
                  {"read_bytes", pull.read_bytes},
                  {"bytes_s", std::llround(pull.bytes_s)}};
  if (pull.whole_bytes) json["whole_bytes"] = *pull.whole_bytes;
  if (pull.seconds_left) json["seconds_left"] = std::llround(*pull.seconds_left);
  if (!pull.source.empty()) json["source"] = pull.source;
  if (!pull.sentence.empty()) json["sentence"] = pull.sentence;
  return json;
}

}  // namespace

ApiResult<ModelDesk*> desk_for(const ApiContext& context) {
  if (context.desk() != nullptr) return context.desk();
  return ApiError{409, "this node keeps no models on a disk", "", "no_disk"};
}

void serve_cluster_disk(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  send_fresh(reply, list(context));
}

void serve_disk_removal(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, remove(context, request));
}

void serve_pull(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, pull(context, request), 202);
}

void serve_pull_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, end_pull(context, request));
}

JsonArray pulls_json(const ApiContext& context) {
  JsonArray pulls;
  if (context.desk() == nullptr) return pulls;
  for (const ModelPull& pull : context.desk()->pulls().list()) pulls.push_back(pull_json(pull));
  return pulls;
}

}  // namespace lockstep
