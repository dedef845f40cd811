// The invariants of the simulation.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "cluster/simulation_run.h"

namespace lockstep {

// After every event: memory is promised once, and never more is used than exists; groups of one
// model share no node.
void SimulationRun::check_node(int index) {
  const SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  if (!node.is_up()) return;
  if (node.brain->parts().promised_bytes() > node.budget_bytes) {
    fail(fmt::format("node {} has promised {} of {} bytes", node.id.short_text(),
                     node.brain->parts().promised_bytes(), node.budget_bytes));
  }
  if (node.used_bytes() > node.budget_bytes) {
    fail(fmt::format("node {} uses {} of {} bytes", node.id.short_text(), node.used_bytes(),
                     node.budget_bytes));
  }
  for (auto part = node.running.begin(); part != node.running.end(); ++part) {
    const auto next = std::next(part);
    if (next == node.running.end() || next->first.first != part->first.first) continue;
    fail(fmt::format("node {} runs parts of {} in epochs {} and {}", node.id.short_text(),
                     part->first.first, part->first.second.counter, next->first.second.counter));
  }
}

// Each model and epoch has one placement in all groups; a node starts an epoch once, and never an
// earlier one afterwards.
void SimulationRun::check_start(int index, const StartPartAction& action) {
  const PlacementShare& part = action.part;
  const auto [item, is_new] = placements_.try_emplace({part.model, part.epoch}, part.ranks);
  if (!is_new && item->second != part.ranks) {
    fail(fmt::format("{} has two placements in epoch {}", part.model, part.epoch.counter));
  }
  const SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  if (part.bytes != bytes_on(part.ranks, node.id) || part.bytes <= 0) {
    fail(fmt::format("{} is started with {} bytes", part.model, part.bytes));
  }
  auto& last = started_[{index, node.life, part.model}];
  if (part.epoch <= last) {
    fail(fmt::format("{} epoch {} is started after epoch {}", part.model, part.epoch.counter,
                     last.counter));
  }
  last = part.epoch;
}

// A disk's state never goes backwards.
void SimulationRun::check_write(int index, const DesiredState& state) {
  for (const auto& [name, entry] : nodes_[static_cast<size_t>(index)].disk.entries()) {
    const DesiredEntry* written = state.find(name);
    if (written == nullptr || written->stamp < entry.stamp) {
      fail(fmt::format("a disk is about to forget {}", name));
    }
  }
}

void SimulationRun::note_disk(int index) {
  const DesiredState& disk = nodes_[static_cast<size_t>(index)].disk;
  for (auto& [name, list] : acknowledged_) {
    const DesiredEntry* held = disk.find(name);
    for (Acknowledged& write : list) {
      if (held != nullptr && held->stamp >= write.stamp) write.disks |= 1u << index;
    }
  }
}

// Half a minute into a calm time all nodes have the same desired state, which includes every
// acknowledged write that still was on one of their disks.
void SimulationRun::check_agreement() {
  uint32_t here = 0;
  const DesiredState* first = nullptr;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].is_up()) continue;
    here |= 1u << i;
    const DesiredState& desired = nodes_[i].brain->desired();
    if (first == nullptr) first = &desired;
    if (!(desired == *first) || desired.digest() != first->digest()) {
      return fail(fmt::format("node {} does not know what the others know to be desired",
                              nodes_[i].id.short_text()));
    }
  }
  for (const auto& [name, list] : acknowledged_) {
    for (const Acknowledged& write : list) {
      if ((write.disks & here) == 0) continue;
      const DesiredEntry* held = first->find(name);
      if (held == nullptr || held->stamp < write.stamp) {
        return fail(fmt::format("an acknowledged write of {} is lost", name));
      }
    }
  }
}

// The checks at the end of a calm time.
void SimulationRun::check_calm() {
  check_agreement();
  ++result_.calm_checks;
  NodeId lowest;
  const SimulatedNode* any = nullptr;
  for (const SimulatedNode& node : nodes_) {
    if (!node.is_up()) continue;
    if (any == nullptr || node.id < lowest) lowest = node.id;
    any = &node;
  }
  if (any == nullptr) return;
  for (const SimulatedNode& node : nodes_) {
    if (node.is_up() && node.brain->coordinator() != lowest) {
      return fail(fmt::format("node {} obeys node {} instead of {}", node.id.short_text(),
                              node.brain->coordinator().short_text(), lowest.short_text()));
    }
    if (node.is_up() && !(node.disk == node.brain->desired())) {
      return fail(fmt::format("the disk of node {} lacks something", node.id.short_text()));
    }
  }
  for (const auto& [name, entry] : any->brain->desired().entries()) {
    if (entry.wanted && entry.promises.idle_unload_s == 0) check_model(entry);
  }
  check_only_wanted_runs(any->brain->desired());
}

// As many groups are ready as were asked for, or as fit: each complete, on separate nodes, and no
// other part of the model exists.
void SimulationRun::check_model(const DesiredEntry& entry) {
  std::map<PlacementEpoch, int64_t> ready_bytes;
  std::vector<NodeOffer> offers;
  size_t unready = 0;
  for (const SimulatedNode& node : nodes_) {
    if (!node.is_up()) continue;
    const auto& pinned = entry.promises.pinned;
    bool may_hold =
        pinned.empty() || std::find(pinned.begin(), pinned.end(), node.id) != pinned.end();
    for (const PlacementShare& part : node.brain->parts().reports()) {
      if (part.model != entry.name) continue;
      may_hold = false;
      if (part.state == PartState::kReady && node.running.contains({part.model, part.epoch})) {
        ready_bytes[part.epoch] += part.bytes;
      } else {
        ++unready;
      }
    }
    if (may_hold)
      offers.push_back({.node = node.id, .free_bytes = node.budget_bytes - node.used_bytes()});
  }
  const auto groups = static_cast<int64_t>(ready_bytes.size());
  if (groups > entry.promises.replicas) {
    return fail(fmt::format("{} is there {} times, {} are wanted", entry.name, groups,
                            entry.promises.replicas));
  }
  result_.ready_checks += groups;
  for (const auto& [epoch, bytes] : ready_bytes) {
    if (bytes != simulated_bytes(entry))
      return fail(fmt::format("{} is there in part", entry.name));
  }
  if (unready > 0) return fail(fmt::format("{} is still being placed", entry.name));
  if (groups == entry.promises.replicas) return;
  if (split_by_memory(entry, simulated_bytes(entry), offers).ok()) {
    fail(fmt::format("{} is there {} of {} times and would fit", entry.name, groups,
                     entry.promises.replicas));
  }
}

void SimulationRun::check_only_wanted_runs(const DesiredState& desired) {
  for (const SimulatedNode& node : nodes_) {
    for (const auto& [key, bytes] : node.running) {
      const DesiredEntry* entry = desired.find(key.first);
      if (entry == nullptr || !entry->wanted || entry->promises.idle_unload_s > 0) {
        return fail(
            fmt::format("{} runs on node {} and nobody wants it", key.first, node.id.short_text()));
      }
    }
  }
}

}  // namespace lockstep
