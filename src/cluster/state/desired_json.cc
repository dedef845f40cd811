#include "cluster/state/desired_json.h"

#include "cluster/json_fields.h"

namespace lockstep {
namespace {

Json promises_json(const ModelPromises& promises) {
  JsonArray pinned;
  for (const NodeId& id : promises.pinned) pinned.emplace_back(id.text());
  JsonArray aliases;
  for (const std::string& alias : promises.aliases) aliases.emplace_back(alias);
  JsonObject json{{"context", promises.context},
                  {"streams", promises.streams},
                  {"parallel", promises.parallel},
                  {"pinned", std::move(pinned)},
                  {"aliases", std::move(aliases)},
                  {"idle_unload_s", promises.idle_unload_s},
                  {"replicas", promises.replicas},
                  {"parallelism", name_in(kParallelisms, promises.parallelism)}};
  if (promises.ngrams_on_disk) json["ngrams_on_disk"] = true;
  if (!promises.kv.empty()) json["kv"] = promises.kv;
  return json;
}

Result<ModelPromises> promises_of(const Json& value) {
  ModelPromises promises;
  promises.context = TRY(number_field(value, "context", kPromiseMax));
  promises.streams = TRY(number_field(value, "streams", kPromiseMax));
  promises.parallel = TRY(number_field(value, "parallel", kPromiseMax));
  promises.idle_unload_s = TRY(number_field(value, "idle_unload_s", kPromiseMax));
  // Absent from files of earlier versions.
  if (find(value, "replicas") != nullptr) {
    promises.replicas = TRY(number_field(value, "replicas", kReplicasMax));
  }
  if (find(value, "parallelism") != nullptr) {
    const std::string parallelism = TRY(text_field(value, "parallelism", 16));
    promises.parallelism = TRY(value_named(kParallelisms, parallelism, "parallelism"));
  }
  if (find(value, "ngrams_on_disk") != nullptr) {
    promises.ngrams_on_disk = TRY(bool_field(value, "ngrams_on_disk"));
  }
  if (find(value, "kv") != nullptr) {
    promises.kv = TRY(text_field(value, "kv", kKvNameBytesMax));
  }
  for (const Json& item : *TRY(list_field(value, "pinned", kPinnedMax))) {
    promises.pinned.push_back(TRY(node_of(item)));
  }
  for (const Json& item : *TRY(list_field(value, "aliases", kAliasesMax))) {
    if (!item.is_string()) return Error{ErrorCode::kCorrupt, "an alias must be text"};
    promises.aliases.emplace_back(item.get_string());
  }
  return promises;
}

}  // namespace

Json stamp_json(const Stamp& stamp) {
  return JsonArray{stamp.time_ms, stamp.counter, stamp.node.text(), stamp.incarnation};
}

Result<Stamp> stamp_of(const Json& value) {
  const bool is_stamp = value.is_array() && value.get_array().size() == 4 &&
                        value.get_array()[0].is_int64() && value.get_array()[1].is_int64() &&
                        value.get_array()[3].is_int64();
  if (!is_stamp) {
    return Error{ErrorCode::kCorrupt, "a stamp must be a time, a count, a node's id and its life"};
  }
  const JsonArray& parts = value.get_array();
  const NodeId node = TRY(node_of(parts[2]));
  const Stamp stamp{parts[0].get_int64(), parts[1].get_int64(), node, parts[3].get_int64()};
  if (stamp.time_ms < 0 || stamp.time_ms > kStampMsMax || stamp.counter < 0 ||
      stamp.counter > kStampCounterMax) {
    return Error{ErrorCode::kCorrupt, "a stamp is beyond the year 2200"};
  }
  if (stamp.incarnation < 0) {
    return Error{ErrorCode::kCorrupt, "the life in a stamp must not be negative"};
  }
  return stamp;
}

Json entry_json(const DesiredEntry& entry) {
  JsonObject json{{"name", entry.name},
                  {"stamp", stamp_json(entry.stamp)},
                  {"wanted", entry.wanted},
                  {"path", entry.path},
                  {"promises", promises_json(entry.promises)}};
  if (!entry.draft_model.empty()) json["draft_model"] = entry.draft_model;
  return json;
}

Result<DesiredEntry> entry_of(const Json& value) {
  DesiredEntry entry;
  entry.name = TRY(text_field(value, "name", kModelNameBytesMax));
  const Json* stamp = find(value, "stamp");
  const Json* promises = find(value, "promises");
  if (stamp == nullptr || promises == nullptr) {
    return Error{ErrorCode::kCorrupt, "a desired model needs a stamp and promises"};
  }
  entry.stamp = TRY(stamp_of(*stamp));
  entry.wanted = TRY(bool_field(value, "wanted"));
  entry.path = TRY(text_field(value, "path", kModelPathBytesMax));
  if (find(value, "draft_model") != nullptr) {
    entry.draft_model = TRY(text_field(value, "draft_model", kModelPathBytesMax));
  }
  entry.promises = TRY(promises_of(*promises));
  const Status checked = check_entry(entry);
  if (!checked.ok()) return Error{ErrorCode::kCorrupt, checked.error().message};
  return entry;
}

std::string entry_text(const DesiredEntry& entry) {
  return dump_json(entry_json(entry));
}

Json desired_json(const DesiredState& state) {
  JsonArray entries;
  for (const auto& [name, entry] : state.entries()) entries.push_back(entry_json(entry));
  return entries;
}

Result<DesiredState> desired_of(const Json& value) {
  if (!value.is_array() || value.get_array().size() > kDesiredNamesMax) {
    return Error{ErrorCode::kCorrupt, "the desired state must be a list of models"};
  }
  DesiredState state;
  for (const Json& item : value.get_array()) state.merge(TRY(entry_of(item)));
  return state;
}

}  // namespace lockstep
