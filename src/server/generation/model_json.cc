#include "server/generation/model_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/generation/api_context.h"

namespace lockstep {
namespace {

JsonObject pair_object(const PairStatus& pair) {
  return {{"a", pair.times.a},
          {"b", pair.times.b},
          {"path", link_path_name(pair.use.path)},
          {"rails", pair.use.rails},
          {"tcp_rails", pair.use.tcp_rails},
          {"encrypted", pair.use.is_encrypted},
          {"reason", pair.use.reason},
          {"a_host", pair.use.own_host},
          {"b_host", pair.use.peer_host},
          {"device", pair.use.device},
          {"network_note", pair.use.network_note},
          {"p50_us", pair.times.p50_us},
          {"p99_us", pair.times.p99_us},
          {"gbit_s", pair.times.gbit_s},
          {"bytes_s", pair.bytes_s}};
}

// The node's name; if it is unknown, the short form of its id.
std::string node_name_of(const NodeId& id, const ClusterReport& report) {
  const auto node = std::find_if(report.nodes.begin(), report.nodes.end(),
                                 [&](const ClusterNodeReport& one) { return one.id == id; });
  return node == report.nodes.end() || node->name.empty() ? id.short_text() : node->name;
}

JsonObject wanted_json(const DesiredEntry& entry, const ClusterReport& report) {
  const ModelPromises& promises = entry.promises;
  JsonArray nodes, aliases;
  for (const NodeId& id : promises.pinned) nodes.emplace_back(node_name_of(id, report));
  for (const std::string& alias : promises.aliases) aliases.emplace_back(alias);
  return {{"path", entry.path},
          {"draft_model", entry.draft_model.empty() ? Json() : Json(entry.draft_model)},
          {"context", promises.context},
          {"streams", promises.streams},
          {"parallel", promises.parallel},
          {"parallelism", name_in(kParallelisms, promises.parallelism)},
          {"nodes", std::move(nodes)},
          {"aliases", std::move(aliases)},
          {"idle_unload_s", promises.idle_unload_s},
          {"replicas", promises.replicas},
          {"kv", promises.kv.empty() ? Json() : Json(promises.kv)},
          {"ngrams_on_disk", promises.ngrams_on_disk}};
}

JsonObject rank_json(const RankStatus& rank) {
  JsonObject json{{"rank", rank.rank},
                  {"pid", rank.pid},
                  {"weight_bytes", rank.weight_bytes},
                  {"read_bytes", rank.read_bytes},
                  {"token_bytes", rank.token_bytes},
                  {"state_bytes", rank.state_bytes}};
  if (rank.first_layer >= 0) json["layers"] = JsonArray{rank.first_layer, rank.last_layer};
  if (rank.share > 0) json["share"] = rank.share;
  if (!rank.device.empty()) json["device"] = rank.device;
  return json;
}

JsonObject loading_json(const ModelLoading& loading) {
  JsonObject json{{"read_bytes", loading.read_bytes},
                  {"whole_bytes", loading.whole_bytes},
                  {"bytes_s", loading.bytes_s}};
  const double left = static_cast<double>(loading.whole_bytes) -
                      static_cast<double>(std::min(loading.read_bytes, loading.whole_bytes));
  if (loading.bytes_s > 0) json["seconds_left"] = left / loading.bytes_s;
  return json;
}

const ModelStatus::Group* served_group(const ModelStatus& status, const PlacementEpoch& epoch) {
  for (const ModelStatus::Group& group : status.groups) {
    if (group.epoch == epoch) return &group;
  }
  return nullptr;
}

// Names the nodes of the ranks that are shown, which are those of one group.
void place_ranks(JsonObject& model, const ClusterModelReport& placed) {
  const Json* const shown = model.if_contains("group");
  if (shown == nullptr) return;
  const auto& plan = placed.groups[shown->to_number<size_t>()].plan.ranks;
  JsonArray& ranks = model["ranks"].as_array();
  for (size_t rank = 0; rank < ranks.size() && rank < plan.size(); ++rank) {
    JsonObject& json = ranks[rank].as_object();
    json["node"] = plan[rank].node.text();
    json["share"] = plan[rank].share;
  }
}

}  // namespace

JsonObject status_json(const ModelStatus& status) {
  JsonArray ranks;
  for (const RankStatus& rank : status.ranks) ranks.push_back(rank_json(rank));
  JsonArray links;
  for (const PairStatus& pair : status.links) links.push_back(pair_object(pair));
  JsonObject model{{"name", status.name},
                   {"state", model_state_name(status.state)},
                   {"restarts", status.restarts},
                   {"last_error", status.last_error},
                   {"epoch", status.epoch},
                   {"late_frames", status.late_calls + status.late_frames},
                   {"late_calls", status.late_calls},
                   {"link", status.link},
                   {"stages", status.stages},
                   {"threads", status.threads},
                   {"context", status.context},
                   {"running", status.running},
                   {"ranks", std::move(ranks)},
                   {"links", std::move(links)}};
  if (status.loading) model["loading"] = loading_json(*status.loading);
  return model;
}

std::string first_data_host(const ClusterNodeReport& node) {
  return node.data_addresses.empty() ? "" : node.data_addresses.front().host;
}

JsonArray data_addresses_json(const ClusterNodeReport& node) {
  JsonArray addresses;
  for (const DataAddress& one : node.data_addresses) {
    addresses.emplace_back(one.host + "/" + std::to_string(one.bits));
  }
  return addresses;
}

JsonObject node_json(const ClusterNodeReport& node) {
  JsonObject json{{"id", node.id.text()},
                  {"name", node.name},
                  {"version", node.version},
                  {"address", node.address},
                  {"data_host", first_data_host(node)},
                  {"data_addresses", data_addresses_json(node)},
                  {"state", node.state},
                  {"note", node.note},
                  {"is_self", node.is_self},
                  {"self", node.is_self},
                  {"is_coordinator", node.is_coordinator},
                  {"is_spare", node.is_spare},
                  {"budget_bytes", node.budget_bytes},
                  {"promised_bytes", node.promised_bytes},
                  {"read_bytes_s", node.read_bytes_s},
                  {"life", node.life},
                  {"clock_skew_s", node.clock_ahead_s ? Json(*node.clock_ahead_s) : Json(nullptr)},
                  {"power_w", node.power_w ? Json(*node.power_w) : Json(nullptr)}};
  const auto add = [&json](std::string_view name, const std::optional<int64_t>& value) {
    if (value) json[name] = *value;
  };
  add("uptime_s", node.meters.uptime_s);
  add("cores", node.meters.cores);
  add("disk_free_bytes", node.meters.disk_free_bytes);
  return json;
}

void add_placement(JsonObject& model, const ClusterModelReport& placed, const ClusterReport& report,
                   const ModelStatus& status) {
  JsonArray ranks, groups;
  for (size_t index = 0; index < placed.groups.size(); ++index) {
    const ClusterGroupReport& group = placed.groups[index];
    const ModelStatus::Group* const served = served_group(status, group.epoch);
    if (served != nullptr && served->is_shown) model["group"] = index;
    groups.push_back(JsonObject{{"group", index},
                                {"phase", name_in(kModelPhases, group.phase)},
                                {"stages", group.plan.stages},
                                {"running", served == nullptr ? 0 : served->running}});
    for (size_t rank = 0; rank < group.plan.ranks.size(); ++rank) {
      const RankPart& part = group.plan.ranks[rank];
      ranks.push_back(JsonObject{{"rank", rank},
                                 {"node", part.node.text()},
                                 {"node_name", node_name_of(part.node, report)},
                                 {"bytes", part.bytes},
                                 {"group", index}});
    }
  }
  place_ranks(model, placed);
  if (placed.loading) {
    model["loading"] = loading_json({static_cast<uint64_t>(placed.loading->read_bytes),
                                     static_cast<uint64_t>(placed.loading->whole_bytes),
                                     static_cast<double>(placed.loading->bytes_s)});
  }
  model["phase"] = name_in(kModelPhases, placed.phase);
  model["sentence"] = placed.sentence;
  model["placement"] = std::move(ranks);
  model["groups"] = std::move(groups);
  model["wanted"] = wanted_json(placed.entry, report);
}

}  // namespace lockstep
