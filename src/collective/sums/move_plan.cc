#include "collective/sums/move_plan.h"

namespace lockstep {
namespace {

ExchangePlan with_slots(int count, int given) {
  ExchangePlan plan;
  plan.part_count = count;
  for (int part = 0; part < count; ++part) {
    plan.slots.push_back({.part = part, .is_given = part == given, .node = {}});
  }
  return plan;
}

// Over the tree of shortest ways from `root` outward.
void add_broadcast(ExchangePlan& plan, const LinkGraph& graph, int rank, int root, int slot) {
  const std::vector<int> parents = graph.parents(root);
  if (rank != root) plan.route(parents[static_cast<size_t>(rank)]).receives.push_back({slot});
  for (int child = 0; child < graph.size(); ++child) {
    const bool is_mine = child != root && parents[static_cast<size_t>(child)] == rank;
    if (is_mine) plan.route(child).sends.push_back({slot});
  }
}

}  // namespace

ExchangePlan plan_all_gather(const LinkGraph& graph, int rank) {
  ExchangePlan plan = with_slots(graph.size(), rank);
  for (int source = 0; source < graph.size(); ++source) {
    add_broadcast(plan, graph, rank, source, source);
  }
  return plan;
}

ExchangePlan plan_gather(const LinkGraph& graph, int rank, int root) {
  ExchangePlan plan = with_slots(graph.size(), rank);
  const std::vector<int> parents = graph.parents(root);
  for (int source = 0; source < graph.size(); ++source) {
    int came_from = -1;
    for (int at = source;; at = parents[static_cast<size_t>(at)]) {
      if (at == rank) {
        if (came_from >= 0) plan.route(came_from).receives.push_back({source});
        if (rank != root) plan.route(parents[static_cast<size_t>(at)]).sends.push_back({source});
      }
      if (at == root) break;
      came_from = at;
    }
  }
  return plan;
}

ExchangePlan plan_broadcast(const LinkGraph& graph, int rank, int root) {
  ExchangePlan plan = with_slots(1, rank == root ? 0 : -1);
  add_broadcast(plan, graph, rank, root, 0);
  return plan;
}

}  // namespace lockstep
