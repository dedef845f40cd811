#include "collective/sums/sum_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {

SumPlanner::SumPlanner(const LeafShares& shares, int chunk_count) : shares_(shares) {
  const auto ranks = static_cast<size_t>(shares.rank_count());
  plan_.chunk_count = chunk_count;
  plan_.adds.resize(ranks);
  plan_.exchanges.resize(ranks);
  held_.resize(ranks * static_cast<size_t>(chunk_count));
  for (int rank = 0; rank < shares.rank_count(); ++rank) {
    plan_.exchanges[static_cast<size_t>(rank)].part_count = chunk_count;
    // Given slots come first: chunk by chunk, the nodes of the shares in their order.
    std::vector<std::pair<int, Held>> given;
    for (int chunk = 0; chunk < chunk_count; ++chunk) {
      for (const TreeNode node : shares.nodes(rank)) {
        const TreeNode high = risen(node, shares.leaf_count());
        given.push_back({chunk, {high, new_slot(rank, chunk, high)}});
      }
    }
    for (auto& slot : plan_.exchanges[static_cast<size_t>(rank)].slots) slot.is_given = true;
    for (const auto& [chunk, held] : given) hold(rank, chunk, held);
  }
}

const std::vector<SumPlanner::Held>& SumPlanner::held(int rank, int chunk) const {
  return held_[static_cast<size_t>(rank * plan_.chunk_count + chunk)];
}

std::vector<SumPlanner::Held>& SumPlanner::holdings(int rank, int chunk) {
  return held_[static_cast<size_t>(rank * plan_.chunk_count + chunk)];
}

bool SumPlanner::knows(int rank, int chunk, TreeNode node) const {
  const auto& all = held(rank, chunk);
  return std::any_of(all.begin(), all.end(),
                     [&](const Held& one) { return is_inside(node, one.node); });
}

bool SumPlanner::has_root(int rank, int chunk) const {
  const auto& all = held(rank, chunk);
  return all.size() == 1 && is_root(all.front().node, shares_.leaf_count());
}

bool SumPlanner::is_complete() const {
  for (int rank = 0; rank < shares_.rank_count(); ++rank) {
    for (int chunk = 0; chunk < plan_.chunk_count; ++chunk) {
      if (!has_root(rank, chunk)) return false;
    }
  }
  return true;
}

void SumPlanner::send(int from, int to, std::vector<int> slots) {
  while (slots.size() > SumPlan::kMessageSlotsMax) {
    const auto cut = slots.end() - SumPlan::kMessageSlotsMax;
    send(from, to, {cut, slots.end()});
    slots.erase(cut, slots.end());
  }
  if (slots.empty()) return;
  ExchangePlan& exchange = plan_.exchanges[static_cast<size_t>(from)];
  for (const int slot : slots) exchange.slots[static_cast<size_t>(slot)].is_sent = true;
  exchange.route(to).sends.push_back(slots);
  const int count = static_cast<int>(slots.size());
  plan_.hops.push_back({plan_.round_count, from, to, count});
  plan_.message_slots_max = std::max(plan_.message_slots_max, count);
  deliveries_.push_back({from, to, std::move(slots)});
}

void SumPlanner::send_all(int from, int to, const std::vector<int>& chunks) {
  std::vector<int> slots;
  for (const int chunk : chunks) {
    for (const Held& one : held(from, chunk)) slots.push_back(one.slot);
  }
  send(from, to, std::move(slots));
}

void SumPlanner::end_round() {
  for (const Delivery& delivery : std::exchange(deliveries_, {})) {
    const ExchangePlan& sender = plan_.exchanges[static_cast<size_t>(delivery.from)];
    ExchangePlan::Message message;
    std::vector<std::pair<int, Held>> fresh;
    for (const int slot : delivery.slots) {
      const ExchangePlan::Slot& sent = sender.slots[static_cast<size_t>(slot)];
      LOCKSTEP_CHECK(!knows(delivery.to, sent.part, sent.node));
      message.push_back(new_slot(delivery.to, sent.part, sent.node));
      fresh.push_back({sent.part, {sent.node, message.back()}});
    }
    auto& receiver = plan_.exchanges[static_cast<size_t>(delivery.to)];
    receiver.route(delivery.from).receives.push_back(std::move(message));
    for (const auto& [chunk, held] : fresh) hold(delivery.to, chunk, held);
  }
  ++plan_.round_count;
}

int SumPlanner::new_slot(int rank, int chunk, TreeNode node) {
  auto& slots = plan_.exchanges[static_cast<size_t>(rank)].slots;
  const bool is_whole = is_root(node, shares_.leaf_count());
  slots.push_back({.part = chunk, .is_root = is_whole, .node = node});
  return static_cast<int>(slots.size()) - 1;
}

// Replaces the parts of `fresh`, then adds it to its sibling, as far up the tree as possible.
void SumPlanner::hold(int rank, int chunk, Held fresh) {
  auto& all = holdings(rank, chunk);
  std::erase_if(all, [&](const Held& one) { return is_inside(one.node, fresh.node); });
  const auto sibling = std::find_if(all.begin(), all.end(), [&](const Held& one) {
    return are_siblings(one.node, fresh.node) || are_siblings(fresh.node, one.node);
  });
  if (sibling == all.end()) {
    all.push_back(fresh);
    std::sort(all.begin(), all.end(), [](const Held& a, const Held& b) {
      return a.node.index << a.node.level < b.node.index << b.node.level;
    });
    return;
  }
  const bool is_left = are_siblings(fresh.node, sibling->node);
  const Held left = is_left ? fresh : *sibling, right = is_left ? *sibling : fresh;
  all.erase(sibling);
  const TreeNode node = parent_of(left.node, shares_.leaf_count());
  const int sum = new_slot(rank, chunk, node);
  auto& slots = plan_.exchanges[static_cast<size_t>(rank)].slots;
  const auto join = [&](int slot, int other, bool left_side) {
    auto& s = slots[static_cast<size_t>(slot)];
    s.sibling = other, s.sum = sum, s.is_left = left_side;
  };
  join(left.slot, right.slot, true);
  join(right.slot, left.slot, false);
  ++plan_.adds[static_cast<size_t>(rank)];
  hold(rank, chunk, {node, sum});
}

}  // namespace lockstep
