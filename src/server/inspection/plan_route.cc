#include "server/inspection/plan_route.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/model_names.h"
#include "hub/files/model_id.h"
#include "model/load/shape_model.h"
#include "model/options/kv_kind.h"
#include "model/shapes/known_shapes.h"
#include "node/cluster/cluster_plan.h"
#include "node/cluster/planned_model.h"
#include "node/models/model_name.h"
#include "planner/plan_json.h"
#include "server/generation/api_context.h"
#include "server/operations/load_request.h"
#include "server/operations/own_node.h"
#include "server/request/fresh_json.h"
#include "server/request/named_node.h"
#include "server/request/request_fields.h"

namespace lockstep {
namespace {

constexpr int64_t kContextMax = INT32_MAX;
constexpr const char* kShapeFormat = "bf16";  // as `lockstep plan` assumes

struct PlanQuestion {
  std::string model;
  // Not set: as the cluster was told.
  std::optional<std::string> draft_model{};  // empty: none
  std::optional<bool> ngrams_on_disk{};
  std::optional<KvKind> kv{};
  PlanRequest request{.limits = {.context = 0, .streams = 1}};
  std::vector<AddedMachine> added;
  std::vector<std::string> removed;  // names or ids of nodes
};

ApiResult<const JsonArray*> list_in(RequestFields& fields, std::string_view key) {
  const Json* value = fields.get(key);
  if (value == nullptr) return static_cast<const JsonArray*>(nullptr);
  if (value->is_array() && value->get_array().size() <= kPlannedMachinesMax) {
    return &value->get_array();
  }
  return bad_field(std::string(key), fmt::format("\"{}\" must be a list of at most {} machines",
                                                 key, kPlannedMachinesMax));
}

ApiResult<AddedMachine> read_added(const Json& json) {
  if (!json.is_object()) return bad_field("add", "each machine of \"add\" must be an object");
  RequestFields fields(json.get_object(), "add.");
  AddedMachine added;
  added.profile = TRY(fields.text("profile")).value_or("");
  added.link = TRY(fields.text("link")).value_or("");
  added.name = TRY(fields.text("name")).value_or("");
  if (added.profile.empty()) {
    return missing_field("add.profile");
  }
  TRY(fields.refuse_ignored());
  return added;
}

ApiResult<PlanQuestion> read_question(const HttpRequest& request) {
  const Json json = TRY(parse_body(request.body));
  RequestFields fields(json.get_object());
  PlanQuestion question;
  question.model = TRY(fields.text("model")).value_or("");
  if (question.model.empty()) {
    return missing_field("model");
  }
  question.draft_model = TRY(fields.text("draft_model"));
  question.ngrams_on_disk = TRY(fields.boolean("ngrams_on_disk"));
  question.kv = TRY(read_kv(fields));
  const auto context = TRY(fields.integer("context", 1, kContextMax));
  const auto streams = TRY(fields.integer("streams", 1, kPlannedStreamsMax));
  question.request.limits.context = static_cast<int>(context.value_or(0));
  question.request.limits.streams = static_cast<int>(streams.value_or(1));
  const JsonArray* const added = TRY(list_in(fields, "add"));
  for (size_t i = 0; added != nullptr && i < added->size(); ++i) {
    question.added.push_back(TRY(read_added((*added)[i])));
  }
  const JsonArray* const removed = TRY(list_in(fields, "remove"));
  for (size_t i = 0; removed != nullptr && i < removed->size(); ++i) {
    const Json& node = (*removed)[i];
    if (!node.is_string()) return bad_field("remove", "\"remove\" must hold names or ids of nodes");
    question.removed.emplace_back(text_of(node.get_string()));
  }
  TRY(fields.refuse_ignored());
  return question;
}

ApiError unknown_model(const std::string& model, const char* field) {
  return {404,
          fmt::format("{} is neither loaded nor on this node's disk nor a published model that "
                      "`lockstep plan` knows; pull it first",
                      model),
          field, "model_not_found"};
}

// Empty for a model that neither the cluster wants (`entry`: null) nor this node serves by itself.
std::string path_of(const ApiContext& context, const DesiredEntry* entry,
                    const std::string& model) {
  if (entry != nullptr) return entry->path;
  const auto own = context.own_paths().find(model);
  return own == context.own_paths().end() ? "" : own->second;
}

// The argument of open_model() for a model as the caller names it in `field`. Callers name no
// paths: those of loaded models (`known`, else empty) were given by somebody with control.
ApiResult<std::string> source_of(ApiContext& context, const char* field, const std::string& name,
                                 const std::string& known) {
  const std::string path = known.empty() ? name : known;
  if (known.empty() && find_known_shape(path) != nullptr) {
    return shape_model_text({.shape = path, .format = kShapeFormat});
  }
  if (known.empty() && !parse_model_id(path).ok()) return unknown_model(path, field);
  if (context.desk() == nullptr) return unknown_model(path, field);
  const auto files = context.desk()->files_of(path);
  if (files.ok()) return files.value().string();
  return files.error().code == ErrorCode::kNotFound ? unknown_model(path, field)
                                                    : to_api_error(files.error());
}

// A model that guesses its tokens; empty: there is none.
struct Draft {
  std::string name;
  std::string source;  // as source_of()
};

ApiResult<Draft> draft_of(ApiContext& context, const DesiredEntry* entry,
                          const PlanQuestion& question) {
  const std::string named = question.draft_model.value_or("");
  const std::string known = question.draft_model || entry == nullptr ? "" : entry->draft_model;
  if (known.empty() && named.empty()) return Draft{};
  std::string source = TRY(source_of(context, "draft_model", named, known));
  return Draft{named.empty() ? model_name_of(known) : named, std::move(source)};
}

// The format of a shape's weights; empty for a checkpoint.
std::string format_of(const std::string& source) {
  const auto shape = parse_shape_model(source);
  return shape.ok() ? shape.value().format : "";
}

ApiResult<std::vector<NodeOffer>> places(const ClusterReport& report, const std::string& model,
                                         const PlanQuestion& question) {
  std::vector<NodeOffer> nodes = offers_for(report, model);
  for (const std::string& name : question.removed) {
    const NodeId id = TRY(node_named(report, name, "remove"));
    std::erase_if(nodes, [&](const NodeOffer& node) { return node.node == id; });
  }
  return nodes;
}

// Without a cluster there is one node: this machine.
ApiResult<std::vector<NodeOffer>> own_places(ApiContext& context, const PlanQuestion& question) {
  constexpr const char* kOwnName = "this machine";  // as in the plan of the command
  const std::string own_name = own_node(context).name;
  std::vector<NodeOffer> nodes;
  for (const std::string& name : question.removed) {
    if (name == kOwnName || name == own_name || name == NodeId().text()) return nodes;
    return bad_field("remove", fmt::format("there is no node \"{}\"; this node serves alone and is "
                                           "called \"{}\"",
                                           name, own_name));
  }
  auto own = context.own_offer().get(kOwnName);
  if (!own.ok()) return to_api_error(own.error());
  nodes.push_back(std::move(own.value()));
  return nodes;
}

// A model's own fault is the request's, as is a machine that nobody knows.
template <class T>
ApiResult<T> planned(Result<T> result, std::string param) {
  if (result.ok()) return std::move(result.value());
  if (result.error().code == ErrorCode::kExhausted) TRY(check_work());
  ApiError error = to_api_error(result.error());
  if (error.status == 404) error.status = 400;
  error.param = std::move(param);
  return error;
}

ApiResult<Json> plan(ApiContext& context, const HttpRequest& request) {
  const PlanQuestion question = TRY(read_question(request));
  const ClusterReport report =
      context.cluster() == nullptr ? ClusterReport{} : context.cluster()->report();
  DesiredState desired;
  for (const ClusterModelReport& model : report.models) desired.merge(model.entry);
  const DesiredEntry* const entry = find_model(desired, question.model).entry;
  const std::string source =
      TRY(source_of(context, "model", question.model, path_of(context, entry, question.model)));
  const Draft draft = TRY(draft_of(context, entry, question));
  const auto nodes =
      TRY(context.cluster() == nullptr ? own_places(context, question)
                                       : places(report, entry ? entry->name : "", question));
  const ClusterFacts cluster = TRY(planned(what_if(nodes, question.added), "add"));
  const PlannedModel model =
      TRY(planned(read_planned_model({.model = source,
                                      .draft_model = draft.source,
                                      .ngrams_on_disk = question.ngrams_on_disk.value_or(
                                          entry != nullptr && entry->promises.ngrams_on_disk)},
                                     PartialFiles::kTables),
                  "model"));
  PlanSubject subject{.model = question.model,
                      .draft_model = draft.name,
                      .format = format_of(source),
                      .request = question.request};
  LoadLimits& limits = subject.request.limits;
  const bool has_promised_kv = !question.kv && entry != nullptr;
  limits.kv = kv_of(
      false, has_promised_kv ? TRY(planned(promised_kv(entry->promises), "kv")) : question.kv);
  if (limits.context == 0)
    limits.context = TRY(planned(context_for(model.facts.config, 0), "context"));
  TRY(planned(model.check_context(limits.context), "context"));
  subject.request.draft_model = model.draft_facts();
  const ModelPlan made = TRY(planned(plan_model(model.facts, cluster, subject.request), "context"));
  TRY(check_work());
  return plan_json(subject, cluster, made);
}

}  // namespace

void serve_cluster_plan(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, plan(context, request));
}

}  // namespace lockstep
