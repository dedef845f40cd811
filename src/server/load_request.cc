#include "server/load_request.h"

#include <fmt/core.h>

#include <utility>

#include "node/model_name.h"
#include "server/request_fields.h"

namespace lockstep {
namespace {

ApiResult<std::vector<std::string>> texts(RequestFields& fields, std::string_view key,
                                          size_t count_max) {
  std::vector<std::string> values;
  const Json* list = fields.get(key);
  if (list == nullptr) return values;
  if (!list->is_array() || list->get_array().size() > count_max) {
    return bad_field(fields.name(key), fmt::format("\"{}\" must be an array of at most {} strings",
                                                   fields.name(key), count_max));
  }
  for (const Json& item : list->get_array()) {
    if (!item.is_string()) {
      return bad_field(fields.name(key),
                       fmt::format("\"{}\" must be an array of strings", fields.name(key)));
    }
    values.emplace_back(item.get_string());
  }
  return values;
}

// "alpha, beta (1a2b3c4d)"
std::string node_names(const ClusterReport& report) {
  std::string names;
  for (const ClusterNodeReport& node : report.nodes) {
    const std::string name = node.name.empty() ? node.id.short_text() : node.name;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

ApiResult<NodeId> node_named(const ClusterReport& report, const std::string& name) {
  const bool is_id_part = name.size() >= NodeId::kShortDigits;
  std::vector<NodeId> found;
  for (const ClusterNodeReport& node : report.nodes) {
    const bool is_meant = node.name == name || (is_id_part && node.id.text().starts_with(name));
    if (is_meant) found.push_back(node.id);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return bad_field(
        "nodes", fmt::format("there is no node \"{}\"; there are {}", name, node_names(report)));
  }
  return bad_field("nodes", fmt::format("{} nodes are named \"{}\": write the first {} digits of "
                                        "the id of one",
                                        found.size(), name, NodeId::kShortDigits));
}

ApiResult<int64_t> promise(RequestFields& fields, std::string_view key) {
  const auto value = TRY(fields.integer(key, 0, kPromiseMax));
  return value.value_or(0);
}

ApiResult<ModelPromises> parse_promises(RequestFields& fields, const ClusterReport& report) {
  ModelPromises promises;
  promises.context = TRY(promise(fields, "context"));
  promises.streams = TRY(promise(fields, "streams"));
  promises.parallel = TRY(promise(fields, "parallel"));
  promises.idle_unload_s = TRY(promise(fields, "idle_unload_s"));
  promises.aliases = TRY(texts(fields, "aliases", kAliasesMax));
  for (const std::string& name : TRY(texts(fields, "nodes", kPinnedMax))) {
    promises.pinned.push_back(TRY(node_named(report, name)));
  }
  return promises;
}

}  // namespace

ApiResult<DesiredEntry> parse_load_request(std::string_view body, const ClusterReport& report) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  const auto model = TRY(fields.text("model"));
  const auto path = TRY(fields.text("path"));
  if (!model || model->empty()) {
    return ApiError{400, "\"model\" is required", "model", "missing_required_parameter"};
  }
  DesiredEntry entry;
  entry.wanted = true;
  entry.path = path.value_or(*model);
  entry.name = path ? *model : model_name_of(*model);
  entry.promises = TRY(parse_promises(fields, report));
  if (const auto unknown = fields.ignored(); !unknown.empty()) {
    return bad_field(unknown.front(), fmt::format("there is no field \"{}\"", unknown.front()));
  }
  if (const Status checked = check_entry(entry); !checked.ok()) {
    return to_api_error(checked.error());
  }
  return entry;
}

}  // namespace lockstep
