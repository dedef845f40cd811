#include "cluster/brain/messages.h"

#include <fmt/core.h>

#include "cluster/brain/meters_json.h"
#include "cluster/json_fields.h"
#include "cluster/state/desired_json.h"
#include "cluster/state/part_json.h"

namespace lockstep {
namespace {

constexpr size_t kProgramBytesMax = 64;
constexpr size_t kNodeNameBytesMax = 64;  // cluster/identity.h allows 63

Result<std::string> model_field(const Json& value) {
  return text_field(value, "model", kModelNameBytesMax);
}

template <class Item, class Write>
JsonArray list_json(const std::vector<Item>& items, const Write& write) {
  JsonArray list;
  list.reserve(items.size());
  for (const Item& item : items) list.push_back(write(item));
  return list;
}

template <class Item, class Read>
Result<std::vector<Item>> list_of(const Json& value, std::string_view key, size_t count_max,
                                  const Read& read) {
  std::vector<Item> items;
  for (const Json& item : *TRY(list_field(value, key, count_max))) {
    items.push_back(TRY(read(item)));
  }
  return items;
}

Json rank_json(const RankPart& rank) {
  return JsonObject{{"node", rank.node.text()}, {"bytes", rank.bytes}, {"share", rank.share}};
}

Result<RankPart> rank_of(const Json& value) {
  RankPart rank;
  rank.node = TRY(node_field(value, "node"));
  rank.bytes = TRY(number_field(value, "bytes", INT64_MAX / (2 * kPlacementRanksMax)));
  rank.share = TRY(number_field(value, "share", kShareMax));
  if (rank.share == 0) return Error{ErrorCode::kCorrupt, "\"share\" must be positive"};
  return rank;
}

// Fields "ranks" and "stages" of an order or a report.
Result<RankPlan> plan_fields(const Json& value) {
  RankPlan plan;
  plan.ranks = TRY(list_of<RankPart>(value, "ranks", kPlacementRanksMax, rank_of));
  plan.stages = TRY(number_field(value, "stages", kPlacementRanksMax));
  if (plan.ranks.empty() || plan.stages == 0 ||
      static_cast<int64_t>(plan.ranks.size()) % plan.stages != 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} ranks cannot form {} stages of the same size",
                                                  plan.ranks.size(), plan.stages)};
  }
  return plan;
}

Json round_trip_json(const RoundTrip& trip) {
  return JsonObject{{"node", trip.node.text()}, {"us", trip.us}};
}

Result<RoundTrip> round_trip_of(const Json& value) {
  RoundTrip trip;
  trip.node = TRY(node_field(value, "node"));
  trip.us = TRY(number_field(value, "us"));
  return trip;
}

Json data_address_json(const DataAddress& address) {
  return JsonObject{{"host", address.host}, {"bits", address.bits}};
}

Result<DataAddress> data_address_of(const Json& value) {
  DataAddress address;
  address.host = TRY(text_field(value, "host", kHostBytesMax));
  address.bits = TRY(number_field(value, "bits", kAddressBitsMax));
  return address;
}

Json part_json(const PlacementShare& part) {
  return JsonObject{{"model", part.model},
                    {"epoch", epoch_json(part.epoch)},
                    {"ranks", list_json(part.ranks, rank_json)},
                    {"stages", part.stages},
                    {"key", part.key},
                    {"state", name_in(kPartStates, part.state)},
                    {"bytes", part.bytes},
                    {"reason", part.reason}};
}

Result<PlacementShare> part_of(const Json& value) {
  PlacementShare part;
  part.model = TRY(model_field(value));
  part.epoch = TRY(epoch_field(value));
  RankPlan plan = TRY(plan_fields(value));
  part.ranks = std::move(plan.ranks);
  part.stages = plan.stages;
  part.key = TRY(number_field(value, "key"));
  const std::string state = TRY(text_field(value, "state", 16));
  part.state = TRY(value_named(kPartStates, state, "state of a part"));
  part.bytes = TRY(number_field(value, "bytes", INT64_MAX / (2 * kPartsMax)));
  part.reason = TRY(text_field(value, "reason", kReasonBytesMax));
  return part;
}

Json use_json(const ModelUse& use) {
  return JsonObject{{"model", use.model}, {"age_ms", use.age_ms}};
}

Result<ModelUse> use_of(const Json& value) {
  ModelUse use;
  use.model = TRY(model_field(value));
  use.age_ms = TRY(number_field(value, "age_ms"));
  return use;
}

Json progress_json(const ModelProgress& progress) {
  return JsonObject{{"model", progress.model},
                    {"phase", name_in(kModelPhases, progress.phase)},
                    {"epoch", epoch_json(progress.epoch)},
                    {"sentence", progress.sentence}};
}

Result<ModelProgress> progress_of(const Json& value) {
  ModelProgress progress;
  progress.model = TRY(model_field(value));
  const std::string phase = TRY(text_field(value, "phase", 16));
  progress.phase = TRY(value_named(kModelPhases, phase, "phase of a model"));
  progress.epoch = TRY(epoch_field(value));
  progress.sentence = TRY(text_field(value, "sentence", kReasonBytesMax));
  return progress;
}

Json load_json(const LoadProgress& load) {
  return JsonObject{{"model", load.model},
                    {"epoch", epoch_json(load.epoch)},
                    {"read_bytes", load.read_bytes},
                    {"whole_bytes", load.whole_bytes},
                    {"bytes_s", load.bytes_s}};
}

Result<LoadProgress> load_of(const Json& value) {
  LoadProgress load;
  load.model = TRY(model_field(value));
  load.epoch = TRY(epoch_field(value));
  load.read_bytes = TRY(number_field(value, "read_bytes"));
  load.whole_bytes = TRY(number_field(value, "whole_bytes"));
  load.bytes_s = TRY(number_field(value, "bytes_s"));
  return load;
}

// Each kind of message: its name, its fields written, its fields read.

JsonObject fields_of(const NodeHeartbeat& beat) {
  return {{"type", "heartbeat"},
          {"incarnation", beat.incarnation},
          {"sequence", beat.sequence},
          {"budget_bytes", beat.budget_bytes},
          {"speed", beat.speed},
          {"operations_s", beat.operations_s},
          {"link_bytes_s", beat.link_bytes_s},
          {"is_spare", beat.is_spare},
          {"is_leaving", beat.is_leaving},
          {"wall_ms", beat.wall_ms},
          {"power_mw", beat.power_mw},
          {"meters", meters_json(beat.meters)},
          {"coordinator", beat.coordinator.text()},
          {"desired_digest", beat.desired_digest},
          {"hears", list_json(beat.hears, [](const NodeId& id) { return Json(id.text()); })},
          {"round_trips", list_json(beat.round_trips, round_trip_json)},
          {"parts", list_json(beat.parts, part_json)},
          {"uses", list_json(beat.uses, use_json)},
          {"models", list_json(beat.models, progress_json)},
          {"loads", list_json(beat.loads, load_json)},
          {"program", beat.program},
          {"name", beat.name},
          {"data_addresses", list_json(beat.data_addresses, data_address_json)}};
}

Result<ClusterMessage> read_heartbeat(const Json& value) {
  NodeHeartbeat beat;
  beat.incarnation = TRY(number_field(value, "incarnation"));
  beat.sequence = TRY(number_field(value, "sequence"));
  beat.program = TRY(text_field(value, "program", kProgramBytesMax));
  beat.name = TRY(text_field(value, "name", kNodeNameBytesMax));
  beat.data_addresses =
      TRY(list_of<DataAddress>(value, "data_addresses", kDataAddressesMax, data_address_of));
  beat.budget_bytes = TRY(number_field(value, "budget_bytes", INT64_MAX / (2 * kNodesMax)));
  beat.speed = TRY(number_field(value, "speed"));
  beat.operations_s = TRY(number_field(value, "operations_s"));
  beat.link_bytes_s = TRY(number_field(value, "link_bytes_s"));
  beat.is_spare = TRY(bool_field(value, "is_spare"));
  beat.is_leaving = TRY(bool_field(value, "is_leaving"));
  beat.wall_ms = TRY(number_field(value, "wall_ms"));
  beat.power_mw = TRY(number_field(value, "power_mw"));
  beat.meters = TRY(meters_field(value));
  beat.coordinator = TRY(node_field(value, "coordinator"));
  beat.desired_digest = TRY(number_field(value, "desired_digest"));
  beat.hears = TRY(list_of<NodeId>(value, "hears", kNodesMax, node_of));
  beat.round_trips = TRY(list_of<RoundTrip>(value, "round_trips", kNodesMax, round_trip_of));
  beat.parts = TRY(list_of<PlacementShare>(value, "parts", kPartsMax, part_of));
  beat.uses = TRY(list_of<ModelUse>(value, "uses", kDesiredNamesMax, use_of));
  beat.models = TRY(list_of<ModelProgress>(value, "models", kDesiredNamesMax, progress_of));
  beat.loads = TRY(list_of<LoadProgress>(value, "loads", kPartsMax, load_of));
  return ClusterMessage(std::move(beat));
}

Json summary_item_json(const std::pair<std::string, Stamp>& item) {
  return JsonObject{{"model", item.first}, {"stamp", stamp_json(item.second)}};
}

Result<std::pair<std::string, Stamp>> summary_item_of(const Json& value) {
  const Json* stamp = find(value, "stamp");
  if (stamp == nullptr) return Error{ErrorCode::kCorrupt, "\"stamp\" is missing"};
  return std::pair(TRY(model_field(value)), TRY(stamp_of(*stamp)));
}

JsonObject fields_of(const DesiredSummary& summary) {
  return {{"type", "summary"}, {"stamps", list_json(summary.stamps, summary_item_json)}};
}

Result<ClusterMessage> read_summary(const Json& value) {
  return ClusterMessage(DesiredSummary{TRY((list_of<std::pair<std::string, Stamp>>(
      value, "stamps", kDesiredNamesMax, summary_item_of)))});
}

JsonObject fields_of(const DesiredUpdate& update) {
  return {{"type", "update"}, {"entries", list_json(update.entries, entry_json)}};
}

Result<ClusterMessage> read_update(const Json& value) {
  return ClusterMessage(
      DesiredUpdate{TRY(list_of<DesiredEntry>(value, "entries", kEntriesPerMessage, entry_of))});
}

JsonObject fields_of(const ReserveOrder& order) {
  return {{"type", "reserve"},
          {"entry", entry_json(order.entry)},
          {"epoch", epoch_json(order.epoch)},
          {"ranks", list_json(order.plan.ranks, rank_json)},
          {"stages", order.plan.stages}};
}

Result<ClusterMessage> read_reserve(const Json& value) {
  const Json* entry = find(value, "entry");
  if (entry == nullptr) return Error{ErrorCode::kCorrupt, "\"entry\" is missing"};
  ReserveOrder order;
  order.entry = TRY(entry_of(*entry));
  order.epoch = TRY(epoch_field(value));
  order.plan = TRY(plan_fields(value));
  return ClusterMessage(std::move(order));
}

JsonObject fields_of(const ReserveReply& reply) {
  return {{"type", "reserved"},
          {"model", reply.model},
          {"epoch", epoch_json(reply.epoch)},
          {"is_granted", reply.is_granted},
          {"highest", epoch_json(reply.highest)},
          {"reason", reply.reason}};
}

Result<ClusterMessage> read_reply(const Json& value) {
  ReserveReply reply;
  reply.model = TRY(model_field(value));
  reply.epoch = TRY(epoch_field(value));
  reply.is_granted = TRY(bool_field(value, "is_granted"));
  reply.highest = TRY(epoch_field(value, "highest"));
  reply.reason = TRY(text_field(value, "reason", kReasonBytesMax));
  return ClusterMessage(std::move(reply));
}

JsonObject fields_of(const StartOrder& order) {
  return {{"type", "start"}, {"model", order.model}, {"epoch", epoch_json(order.epoch)}};
}

Result<ClusterMessage> read_start(const Json& value) {
  StartOrder order;
  order.model = TRY(model_field(value));
  order.epoch = TRY(epoch_field(value));
  return ClusterMessage(std::move(order));
}

JsonObject fields_of(const StopOrder& order) {
  return {{"type", "stop"}, {"model", order.model}, {"epoch", epoch_json(order.epoch)}};
}

Result<ClusterMessage> read_stop(const Json& value) {
  StopOrder order;
  order.model = TRY(model_field(value));
  order.epoch = TRY(epoch_field(value));
  return ClusterMessage(std::move(order));
}

JsonObject fields_of(const RestartOrder&) {
  return {{"type", "restart"}};
}

Result<ClusterMessage> read_restart(const Json&) {
  return ClusterMessage(RestartOrder{});
}

// Only tests encode this; a real node of another version uses that version's own form.
JsonObject fields_of(const ForeignMessage& foreign) {
  return {{"type", "foreign"}, {"program", foreign.program}};
}

using Reader = Result<ClusterMessage> (*)(const Json&);
constexpr std::pair<std::string_view, Reader> kReaders[] = {
    {"heartbeat", read_heartbeat}, {"summary", read_summary}, {"update", read_update},
    {"reserve", read_reserve},     {"reserved", read_reply},  {"start", read_start},
    {"stop", read_stop},           {"restart", read_restart}};

}  // namespace

std::string encode_cluster_message(const ClusterMessage& message) {
  JsonObject object = std::visit([](const auto& kind) { return fields_of(kind); }, message);
  const auto* foreign = std::get_if<ForeignMessage>(&message);
  object["version"] = foreign == nullptr ? kClusterVersion : foreign->version;
  return dump_json(Json(std::move(object)));
}

Result<ClusterMessage> decode_cluster_message(std::string_view text) {
  if (text.size() > kClusterMessageBytesMax) {
    return Error{ErrorCode::kCorrupt, fmt::format("a message of {} bytes, the limit is {}",
                                                  text.size(), kClusterMessageBytesMax)};
  }
  const Json value = TRY(parse_json(text, DuplicateKeys::kRefuse));
  const int64_t version = TRY(number_field(value, "version"));
  if (version != kClusterVersion) {
    auto program = text_field(value, "program", kProgramBytesMax);
    return ClusterMessage(
        ForeignMessage{version, program.ok() ? std::move(program.value()) : std::string()});
  }
  const std::string type = TRY(text_field(value, "type", 16));
  for (const auto& [name, read] : kReaders) {
    if (name == type) return read(value);
  }
  return Error{ErrorCode::kCorrupt, fmt::format("'{}' is not a message between nodes", type)};
}

}  // namespace lockstep
