#include "node/cluster/cluster_report.h"

#include <fmt/core.h>

#include <map>
#include <utility>

namespace lockstep {
namespace {

using NodeReports = std::map<NodeId, ClusterNodeReport>;

int64_t promised_bytes(const std::vector<PlacementShare>& parts) {
  int64_t bytes = 0;
  for (const PlacementShare& part : parts) bytes += part.bytes;
  return bytes;
}

ClusterNodeReport& node_in(NodeReports& nodes, const NodeId& id) {
  ClusterNodeReport& node = nodes[id];
  node.id = id;
  return node;
}

void add_peer(NodeReports& nodes, const Peer& peer, std::string_view state) {
  ClusterNodeReport& node = node_in(nodes, peer.id);
  node.name = peer.name;
  node.version = peer.version;
  node.address = peer.address.text();
  node.state = state;
}

std::string member_note(const Member& member, int64_t now_ms) {
  if (!member.note.empty() || !member.is_alive() || member.is_usable(now_ms)) return member.note;
  return fmt::format("it was lost recently: models are placed on it again in {} s",
                     (member.usable_ms - now_ms + 999) / 1000);
}

std::string life_text(int64_t incarnation) {
  return fmt::format("{:016x}", incarnation);
}

std::optional<double> watts(int64_t power_mw) {
  if (power_mw <= 0) return std::nullopt;
  return static_cast<double>(power_mw) / 1e3;
}

void add_member(NodeReports& nodes, const NodeId& id, const Member& member, int64_t now_ms) {
  ClusterNodeReport& node = node_in(nodes, id);
  node.state = name_in(kMemberStates, member.state);
  node.note = member_note(member, now_ms);
  if (member.last == nullptr) return;
  node.version = member.last->program;
  node.is_spare = member.last->is_spare;
  node.budget_bytes = member.last->budget_bytes;
  node.promised_bytes = promised_bytes(member.last->parts);
  node.read_bytes_s = member.last->speed;
  node.operations_s = member.last->operations_s;
  node.link_bytes_s = member.last->link_bytes_s;
  node.round_trips = member.last->round_trips;
  node.data_addresses = member.last->data_addresses;
  node.life = life_text(member.last->incarnation);
  if (node.name.empty()) node.name = member.last->name;
  node.power_w = watts(member.last->power_mw);
  node.meters = member.last->meters;
  if (member.is_alive()) node.clock_ahead_s = static_cast<double>(member.clock_ahead_ms) / 1e3;
}

ClusterNodeReport own_report(const Brain& brain, const BrainOptions& own,
                             const Identity& identity) {
  ClusterNodeReport node;
  node.id = own.self;
  node.name = identity.name();
  node.version = own.program;
  node.state = name_in(kMemberStates, MemberState::kAlive);
  node.is_self = true;
  node.is_spare = own.is_spare;
  node.budget_bytes = own.budget_bytes;
  node.promised_bytes = brain.parts().promised_bytes();
  node.read_bytes_s = own.speed;
  node.operations_s = own.operations_s;
  node.link_bytes_s = own.link_bytes_s;
  node.data_addresses = brain.data_addresses();
  node.life = life_text(own.incarnation);
  node.power_w = watts(brain.power_mw());
  node.meters = brain.meters();
  node.clock_ahead_s = 0;
  return node;
}

std::vector<ClusterNodeReport> node_reports(const Brain& brain, const BrainOptions& own,
                                            const Identity& identity, const Peers::Report& peers,
                                            int64_t now_ms) {
  NodeReports nodes;
  for (const Peer& peer : peers.absent) add_peer(nodes, peer, "absent");
  for (const Peer& peer : peers.connected) add_peer(nodes, peer, "suspect");  // no heartbeat yet
  for (const auto& [id, member] : brain.membership().members()) {
    add_member(nodes, id, member, now_ms);
  }
  for (const Peers::Unusable& one : peers.unusable) {
    add_peer(nodes, one.peer, name_in(kMemberStates, MemberState::kForeign));
    nodes[one.peer.id].note = one.reason;
  }
  nodes.erase(own.self);
  std::vector<ClusterNodeReport> reports{own_report(brain, own, identity)};
  for (auto& [id, node] : nodes) reports.push_back(std::move(node));
  for (ClusterNodeReport& node : reports) node.is_coordinator = node.id == brain.coordinator();
  return reports;
}

const PlacementShare* find_in(const std::vector<PlacementShare>& parts, std::string_view model,
                              const PlacementEpoch& epoch) {
  for (const PlacementShare& part : parts) {
    if (part.model == model && part.epoch == epoch) return &part;
  }
  return nullptr;
}

// nullopt: no node that is known here has a part of it.
std::optional<PlacementShare> part_of(const Brain& brain, std::string_view model,
                                      const PlacementEpoch& epoch) {
  const std::vector<PlacementShare> own = brain.parts().reports();
  const PlacementShare* part = find_in(own, model, epoch);
  for (const auto& [id, member] : brain.membership().members()) {
    if (part == nullptr && member.last) part = find_in(member.last->parts, model, epoch);
  }
  return part == nullptr ? std::nullopt : std::optional(*part);
}

// A placement made for an earlier request ends soon, even if the coordinator still calls it ready.
ModelPhase group_phase(const ModelProgress& progress, const DesiredEntry& entry,
                       const std::optional<PlacementShare>& part) {
  const bool is_stale = part && part->key != placement_key(entry);
  return is_stale ? ModelPhase::kUnloading : progress.phase;
}

std::optional<LoadProgress> load_of(const Brain& brain, std::string_view model) {
  const auto find = [model](const std::vector<LoadProgress>& loads) -> std::optional<LoadProgress> {
    for (const LoadProgress& load : loads) {
      if (load.model == model) return load;
    }
    return std::nullopt;
  };
  auto found = find(brain.loads());
  for (const auto& [id, member] : brain.membership().members()) {
    if (!found && member.last && member.is_alive()) found = find(member.last->loads);
  }
  return found;
}

ClusterModelReport model_report(const Brain& brain, const DesiredEntry& entry, ClusterTime now) {
  ClusterModelReport report;
  report.entry = entry;
  if (entry.promises.idle_unload_s > 0) report.idle_left_ms = brain.idle_left_ms(now, entry);
  report.loading = load_of(brain, entry.name);
  report.sentence = "the coordinator has not reported on it yet";
  bool is_first = true;
  for (const ModelProgress& progress : brain.progress()) {
    if (progress.model != entry.name) continue;
    const auto part = part_of(brain, entry.name, progress.epoch);
    const ModelPhase phase = group_phase(progress, entry, part);
    if (std::exchange(is_first, false)) {
      report.phase = phase;
      report.sentence.clear();
    }
    if (phase == ModelPhase::kReady) report.phase = ModelPhase::kReady;
    if (!progress.sentence.empty()) report.sentence = progress.sentence;
    if (!part || part->ranks.empty()) continue;
    report.groups.push_back({phase, progress.epoch, {part->ranks, part->stages}});
  }
  return report;
}

// "'bob' (node 1a2b3c4d, 10.0.0.7)", as written by cluster/join/join_host.cc.
ClusterReport::Pin pin_report(const PinDesk::Pending& pending) {
  constexpr std::string_view kNode = "' (node ";
  const std::string& asker = pending.asker;
  const size_t name_end = asker.rfind(kNode);
  const size_t address = asker.rfind(", ");
  if (name_end == std::string::npos || address == std::string::npos || address < name_end ||
      asker.front() != '\'' || asker.back() != ')') {
    return {.name = asker, .address = "", .pin = pending.pin};
  }
  return {.name = asker.substr(1, name_end - 1),
          .address = asker.substr(address + 2, asker.size() - address - 3),
          .pin = pending.pin};
}

}  // namespace

ClusterReport make_cluster_report(const Brain& brain, const BrainOptions& own,
                                  const Identity& identity, const Peers::Report& peers,
                                  int64_t now_ms) {
  ClusterReport report;
  report.cluster = identity.cluster()->id().short_text();
  report.nodes = node_reports(brain, own, identity, peers, now_ms);
  for (const auto& [name, entry] : brain.desired().entries()) {
    if (entry.wanted) report.models.push_back(model_report(brain, entry, {.ms = now_ms}));
  }
  for (const PinDesk::Pending& pin : peers.pins) report.pins.push_back(pin_report(pin));
  report.strangers_refused = peers.strangers_refused;
  report.beacon_problem = peers.beacon_problem;
  return report;
}

}  // namespace lockstep
