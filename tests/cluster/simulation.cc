#include "cluster/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "cluster/simulation_run.h"
#include "cluster/state/desired_json.h"

namespace lockstep {
namespace {

constexpr int kNodesAtMost = 7;
constexpr int64_t kWallStartMs = 1'750'000'000'000;
constexpr int64_t kPulseMs = 500;
constexpr int64_t kPlanningMaxMs = 150;
constexpr size_t kPlansMax = 64;
constexpr int64_t kWildMs = 390'000;
constexpr int64_t kCalmMs = 210'000;

NodeId random_id(SeededRandom& random) {
  std::array<std::byte, NodeId::kBytes> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 56);
  return NodeId(bytes);
}

}  // namespace

SimulationResult simulate(const SimulationOptions& options) {
  return SimulationRun(options).run();
}

int64_t simulated_bytes(const DesiredEntry& entry) {
  return std::stoll(entry.path);
}

SimulationRun::SimulationRun(const SimulationOptions& options)
    : options_(options), random_(options.seed), planning_(options.seed), nodes_(kNodesAtMost) {
  connected_.assign(kNodesAtMost, std::vector<char>(kNodesAtMost, 0));
  cut_ = connected_;
  over_wire_ = random_.chance(1.0 / 32);
  const int64_t joined = random_.between(1, 5);
  for (int i = 0; i < kNodesAtMost; ++i) {
    SimulatedNode& node = nodes_[static_cast<size_t>(i)];
    node.id = random_id(random_);
    node.budget_bytes = random_.between(16, 256) * kGib;
    node.is_spare = random_.chance(0.15);
    node.wall_offset_ms = random_.chance(0.3) ? random_.between(-100'000, 100'000) : 0;
    node.has_joined = i < joined;
    index_[node.id] = i;
  }
}

SimulationResult SimulationRun::run() {
  for (int i = 0; i < kNodesAtMost; ++i) {
    if (nodes_[static_cast<size_t>(i)].has_joined) start(i);
  }
  const int64_t end_ms = options_.minutes * 60'000;
  for (int64_t cycle_ms = 0; cycle_ms < end_ms; cycle_ms += kWildMs + kCalmMs) {
    at(cycle_ms, -1, [this] { wild(); });
    at(cycle_ms + kWildMs, -1, [this] { calm(); });
    at(cycle_ms + kWildMs + 30'000, -1, [this] { check_agreement(); });
    at(cycle_ms + kWildMs + kCalmMs - 1, -1, [this] { check_calm(); });
  }
  at(kPulseMs, -1, [this] { pulse(); });
  while (!events_.empty() && !result_.failure) {
    Event event = events_.top();
    events_.pop();
    if (event.at_ms >= end_ms) break;
    clock_ms_ = event.at_ms;
    ++result_.events;
    result_.trace =
        (result_.trace ^ static_cast<uint64_t>(event.at_ms * 64 + event.node)) * 0x100000001b3u;
    happen(event);
  }
  return result_;
}

void SimulationRun::at(int64_t delay_ms, int node, std::function<void()> call) {
  push({.at_ms = clock_ms_ + delay_ms,
        .kind = EventKind::kCall,
        .node = node,
        .life = node < 0 ? 0 : nodes_[static_cast<size_t>(node)].life,
        .call = std::move(call)});
}

void SimulationRun::push(Event event) {
  event.order = ++order_;
  events_.push(std::move(event));
}

void SimulationRun::happen(Event& event) {
  if (event.node < 0) return event.call();
  SimulatedNode& node = nodes_[static_cast<size_t>(event.node)];
  if (!node.is_up() || node.life != event.life) return;
  if (node.paused_until_ms > clock_ms_) {
    event.at_ms = node.paused_until_ms;
    return push(std::move(event));
  }
  switch (event.kind) {
    case EventKind::kTick:
      act(event.node, node.brain->on_tick(now(node)));
      push({.at_ms = clock_ms_ + kTickMs, .node = event.node, .life = event.life});
      break;
    case EventKind::kMessage:
      // A sender that has started again has new connections; what was on the old ones is gone.
      if (nodes_[static_cast<size_t>(event.from)].life != event.from_life) return;
      act(event.node, node.brain->on_message(now(node), nodes_[static_cast<size_t>(event.from)].id,
                                             event.message));
      break;
    case EventKind::kCall:
      event.call();
      break;
  }
  check_node(event.node);
}

// Each machine's monotonic clock starts at a different value.
ClusterTime SimulationRun::now(const SimulatedNode& node) const {
  const int64_t begin_ms = (&node - nodes_.data() + 1) * 100'000;
  return {clock_ms_ + begin_ms,
          std::max<int64_t>(0, kWallStartMs + clock_ms_ + node.wall_offset_ms)};
}

void SimulationRun::start(int index) {
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  ++node.life;
  node.paused_until_ms = 0;
  BrainOptions options;
  options.self = node.id;
  options.incarnation = static_cast<int64_t>(random_.next() >> 1);
  if (options_.sabotage == Sabotage::kOneLife) options.incarnation = 7;
  options.program = "simulated";
  options.budget_bytes = node.budget_bytes;
  options.is_spare = node.is_spare;
  const bool forgets = options_.sabotage == Sabotage::kLostGroups;
  node.plans.clear();
  const auto plan = [this, index, forgets](
                        const DesiredEntry& entry, size_t groups,
                        std::span<const NodeOffer> offers) -> Result<std::vector<RankPlan>> {
    if (!has_planned(index, entry, groups, offers)) {
      return Error{ErrorCode::kTimeout, "it is being planned"};
    }
    if (forgets && groups < static_cast<size_t>(entry.promises.replicas)) {
      return Error{ErrorCode::kExhausted, "one group is enough"};
    }
    return split_groups(entry, groups, simulated_bytes(entry), offers);
  };
  node.brain = std::make_unique<Brain>(options, node.disk, plan, now(node));
  say(fmt::format("node {} starts, {} models on its disk", node.id.short_text(),
                  node.disk.entries().size()));
  push({.at_ms = clock_ms_ + random_.between(0, kTickMs), .node = index, .life = node.life});
}

// With every other seed a plan is made elsewhere and comes back later, as with ClusterPlanner.
bool SimulationRun::has_planned(int index, const DesiredEntry& entry, size_t groups,
                                std::span<const NodeOffer> offers) {
  if (options_.seed % 2 == 0) return true;
  std::string inputs = fmt::format("{} {}", groups, entry_text(entry));
  for (const NodeOffer& offer : offers) {
    inputs += fmt::format(" {} {}", offer.node.text(), offer.free_bytes);
  }
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  if (node.plans.size() > kPlansMax) node.plans.clear();
  const auto [plan, is_new] = node.plans.try_emplace(inputs, false);
  if (is_new) {
    at(planning_.between(1, kPlanningMaxMs), index, [this, index, inputs] {
      SimulatedNode& planned = nodes_[static_cast<size_t>(index)];
      planned.plans[inputs] = true;
      act(index, planned.brain->plan_again(now(planned)));
    });
  }
  return plan->second;
}

void SimulationRun::crash(int index, bool loses_disk) {
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  if (!node.is_up()) return;
  say(fmt::format("node {} crashes{}", node.id.short_text(), loses_disk ? ", disk lost" : ""));
  ++result_.crashes;
  node.brain.reset();
  node.running.clear();
  // A write in progress may have reached the disk, though it was never acknowledged.
  if (node.writing && random_.chance(0.5)) node.disk = *node.writing;
  node.writing.reset();
  if (options_.sabotage == Sabotage::kDisksForget && !node.disk.entries().empty()) {
    DesiredState rest;
    for (const auto& [name, entry] : node.disk.entries()) {
      if (name != node.disk.entries().begin()->first) rest.merge(entry);
    }
    node.disk = rest;
  }
  if (loses_disk) {
    ++result_.disks_lost;
    node.disk = {};
    for (auto& [name, list] : acknowledged_) {
      for (Acknowledged& write : list) write.disks &= ~(1u << index);
    }
  }
  for (int other = 0; other < kNodesAtMost; ++other) {
    if (connected_[static_cast<size_t>(index)][static_cast<size_t>(other)])
      disconnect(index, other);
  }
}

void SimulationRun::fail(std::string what) {
  if (result_.failure) return;
  result_.failure = fmt::format("seed {} at {:.3f} s: {}", options_.seed,
                                static_cast<double>(clock_ms_) / 1000, what);
}

void SimulationRun::say(const std::string& what) {
  if (options_.prints) fmt::print("{:10.3f} {}\n", static_cast<double>(clock_ms_) / 1000, what);
}

void SimulationRun::act(int index, ClusterActions actions) {
  for (ClusterAction& action : actions) {
    std::visit([&](auto& kind) { act(index, kind); }, action);
  }
}

void SimulationRun::act(int index, SendAction& action) {
  const auto found = index_.find(action.to);
  if (found == index_.end()) return fail("a message to nobody");
  const int to = found->second;
  const auto a = static_cast<size_t>(index);
  const auto b = static_cast<size_t>(to);
  if (!connected_[a][b] || cut_[a][b] || random_.chance(loss_)) return;
  const bool is_lost = (options_.sabotage == Sabotage::kNoUpdates &&
                        std::holds_alternative<DesiredUpdate>(*action.message)) ||
                       (options_.sabotage == Sabotage::kNoStarts &&
                        std::holds_alternative<StartOrder>(*action.message));
  if (is_lost) return;
  auto message = action.message;
  if (over_wire_) {
    auto decoded = decode_cluster_message(encode_cluster_message(*message));
    if (!decoded.ok()) return fail("a message cannot be read: " + decoded.error().message);
    message = std::make_shared<const ClusterMessage>(std::move(decoded.value()));
  }
  for (int copy = 0; copy < (random_.chance(twice_) ? 2 : 1); ++copy) {
    push({.at_ms = clock_ms_ + random_.between(1, delay_max_ms_),
          .kind = EventKind::kMessage,
          .node = to,
          .from = index,
          .life = nodes_[b].life,
          .from_life = nodes_[a].life,
          .message = message});
  }
}

void SimulationRun::act(int index, StartPartAction& action) {
  check_start(index, action);
  ++result_.placements;
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  const auto key = std::pair(action.part.model, action.part.epoch);
  say(fmt::format("node {} starts {} epoch {}, {} GiB", node.id.short_text(), key.first,
                  key.second.counter, action.part.bytes / kGib));
  const int64_t more = options_.sabotage == Sabotage::kGreedyParts ? node.budget_bytes / 2 : 0;
  node.running[key] = action.part.bytes + more;
  const bool fails = is_wild_ && random_.chance(0.1);
  at(random_.between(300, 15'000), index, [this, index, key, fails] {
    const PartEvent event{fails ? PartEvent::Kind::kFailed : PartEvent::Kind::kReady,
                          fails ? "it ran out of luck" : ""};
    end_part(index, key.first, key.second, event);
  });
}

void SimulationRun::act(int index, StopPartAction& action) {
  say(fmt::format("node {} ends {} epoch {}", nodes_[static_cast<size_t>(index)].id.short_text(),
                  action.model, action.epoch.counter));
  at(random_.between(20, 3'000), index, [this, index, model = action.model, epoch = action.epoch] {
    end_part(index, model, epoch, {PartEvent::Kind::kStopped, ""});
  });
}

// kReady does not end a part; parts that no longer run report nothing.
void SimulationRun::end_part(int index, const std::string& model, const PlacementEpoch& epoch,
                             const PartEvent& event) {
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  const auto found = node.running.find({model, epoch});
  if (found == node.running.end()) return;
  if (event.kind != PartEvent::Kind::kReady) node.running.erase(found);
  act(index, node.brain->on_part_event(now(node), model, epoch, event));
}

void SimulationRun::act(int index, PersistAction& action) {
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  if (node.writing) return fail("two writes to one disk at once");
  node.writing = action.state;
  at(random_.between(1, node.disk_ms), index, [this, index, revision = action.revision] {
    SimulatedNode& writer = nodes_[static_cast<size_t>(index)];
    const auto state = std::exchange(writer.writing, nullptr);
    Status status = Ok{};
    if (writer.disk_refuses) {
      status = Error{ErrorCode::kInternal, "the disk is full"};
    } else if (options_.sabotage != Sabotage::kDiskLies) {
      check_write(index, *state);
      writer.disk = *state;
      note_disk(index);
    }
    act(index, writer.brain->on_persisted(now(writer), revision, status));
  });
}

// The simulation never restarts nodes this way.
void SimulationRun::act(int, RestartAction&) {
  fail("a node starts again that nobody told to");
}

void SimulationRun::act(int index, AnswerAction& action) {
  const auto found = requests_.find(action.request);
  if (found == requests_.end()) return fail("an answer to no request, or a second one");
  const auto [model, stamp] = found->second;
  requests_.erase(found);
  if (!action.status.ok()) return;
  ++result_.writes;
  const DesiredEntry* held = nodes_[static_cast<size_t>(index)].disk.find(model);
  if (held == nullptr || held->stamp < stamp) {
    return fail(fmt::format("{} was acknowledged and is not on the disk", model));
  }
  auto& list = acknowledged_[model];
  list.push_back({stamp, 0});
  if (list.size() > 32) list.erase(list.begin());
  for (int i = 0; i < kNodesAtMost; ++i) note_disk(i);
}

void SimulationRun::act(int index, NewsAction& action) {
  say(fmt::format("node {}: {}", nodes_[static_cast<size_t>(index)].id.short_text(),
                  action.sentence));
}

// Connections open and close as both ends notice.
void SimulationRun::pulse() {
  at(kPulseMs, -1, [this] { pulse(); });
  for (int a = 0; a < kNodesAtMost; ++a) {
    for (int b = a + 1; b < kNodesAtMost; ++b) {
      const auto i = static_cast<size_t>(a);
      const auto k = static_cast<size_t>(b);
      if (!nodes_[i].is_up() || !nodes_[k].is_up()) continue;
      const bool is_cut = cut_[i][k] || cut_[k][i];
      if (!connected_[i][k] && !is_cut && random_.chance(0.7)) {
        connect(a, b);
      } else if (connected_[i][k] && is_cut && random_.chance(0.1)) {
        disconnect(a, b);
      }
    }
  }
}

void SimulationRun::connect(int a, int b) {
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    connected_[static_cast<size_t>(one)][static_cast<size_t>(other)] = 1;
    at(random_.between(1, 50), one, [this, one = one, other = other] {
      SimulatedNode& node = nodes_[static_cast<size_t>(one)];
      const NodeId& peer = nodes_[static_cast<size_t>(other)].id;
      act(one, node.brain->on_peer_connected(now(node), peer));
    });
  }
}

void SimulationRun::disconnect(int a, int b) {
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    connected_[static_cast<size_t>(one)][static_cast<size_t>(other)] = 0;
    at(random_.between(1, 300), one, [this, one = one, other = other] {
      SimulatedNode& node = nodes_[static_cast<size_t>(one)];
      const NodeId& peer = nodes_[static_cast<size_t>(other)].id;
      act(one, node.brain->on_peer_lost(now(node), peer));
    });
  }
}

}  // namespace lockstep
