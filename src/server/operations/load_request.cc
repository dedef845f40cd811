#include "server/operations/load_request.h"

#include <fmt/core.h>

#include <utility>

#include "node/models/model_name.h"
#include "server/request/named_node.h"

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

ApiResult<int64_t> promise(RequestFields& fields, std::string_view key) {
  const auto value = TRY(fields.integer(key, 0, kPromiseMax));
  return value.value_or(0);
}

ApiResult<Parallelism> parallelism(RequestFields& fields) {
  const auto name = TRY(fields.text("parallelism"));
  if (!name) return Parallelism::kAuto;
  const auto value = value_named(kParallelisms, *name, "parallelism");
  if (!value.ok()) return bad_field("parallelism", value.error().message);
  return value.value();
}

ApiResult<ModelPromises> parse_promises(RequestFields& fields, const ClusterReport& report) {
  ModelPromises promises;
  promises.context = TRY(promise(fields, "context"));
  promises.streams = TRY(promise(fields, "streams"));
  promises.parallel = TRY(promise(fields, "parallel"));
  promises.parallelism = TRY(parallelism(fields));
  promises.idle_unload_s = TRY(promise(fields, "idle_unload_s"));
  if (const auto kv = TRY(read_kv(fields))) promises.kv = kv_kind_name(*kv);
  promises.ngrams_on_disk = TRY(fields.boolean("ngrams_on_disk")).value_or(false);
  promises.replicas = TRY(fields.integer("replicas", 1, kReplicasMax)).value_or(1);
  promises.aliases = TRY(texts(fields, "aliases", kAliasesMax));
  for (const std::string& name : TRY(texts(fields, "nodes", kPinnedMax))) {
    promises.pinned.push_back(TRY(node_named(report, name, "nodes")));
  }
  return promises;
}

}  // namespace

ApiResult<std::optional<KvKind>> read_kv(RequestFields& fields) {
  const auto name = TRY(fields.text("kv"));
  if (!name) return std::optional<KvKind>();
  const auto kind = parse_kv_kind(*name);
  if (!kind.ok()) return bad_field("kv", kind.error().message);
  return std::optional(kind.value());
}

ApiResult<DesiredEntry> parse_load_request(std::string_view body, const ClusterReport& report) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  const auto model = TRY(fields.text("model"));
  const auto path = TRY(fields.text("path"));
  if (!model || model->empty()) {
    return missing_field("model");
  }
  DesiredEntry entry;
  entry.wanted = true;
  entry.path = path.value_or(*model);
  entry.name = path ? *model : model_name_of(*model);
  entry.draft_model = TRY(fields.text("draft_model")).value_or("");
  entry.promises = TRY(parse_promises(fields, report));
  TRY(fields.refuse_ignored());
  if (const Status checked = check_wish(entry); !checked.ok()) {
    return to_api_error(checked.error());
  }
  if (const Status known = check_model_location(entry.path); !known.ok()) {
    return bad_field(path ? "path" : "model", known.error().message);
  }
  if (!entry.draft_model.empty()) {
    const Status known = check_model_location(entry.draft_model);
    if (!known.ok()) return bad_field("draft_model", known.error().message);
  }
  return entry;
}

}  // namespace lockstep
