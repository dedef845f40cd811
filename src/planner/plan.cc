#include "planner/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "planner/explain.h"
#include "planner/partition.h"

namespace lockstep {
namespace {

using Order = MachineOrder;

double speed_of(const PlannedPlacement& plan) {
  return plan.streams > 1 ? plan.total_tok_s : plan.decode_tok_s;
}

template <class Figure>
Order order_by(const ClusterFacts& cluster, Figure figure) {
  Order order(cluster.machines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return figure(cluster.machines[a]) > figure(cluster.machines[b]);
  });
  return order;
}

// A few orders, each starting with machines that suit each other.
std::vector<Order> orders_of(const ClusterFacts& cluster) {
  std::vector<Order> orders{
      order_by(cluster, [](const Machine& m) { return m.read_bytes_per_us; }),
      order_by(cluster, [](const Machine& m) { return static_cast<double>(m.memory_bytes); })};
  if (!cluster.links.is_uniform()) {
    constexpr size_t kSeedsMax = 4;
    const Order fastest = orders.front();
    for (size_t i = 0; i < std::min(kSeedsMax, fastest.size()); ++i) {
      orders.push_back(nearest_order(cluster, fastest[i]));
    }
  }
  std::vector<Order> different;
  for (Order& order : orders) {
    if (std::find(different.begin(), different.end(), order) == different.end()) {
      different.push_back(std::move(order));
    }
  }
  return different;
}

PlacementKind kind_of(size_t machines, int stages) {
  if (machines == 1) return PlacementKind::kOne;
  if (stages == 1) return PlacementKind::kTensor;
  return static_cast<size_t>(stages) == machines ? PlacementKind::kPipeline
                                                 : PlacementKind::kTensorPipeline;
}

class Search {
 public:
  Search(const ModelFacts& facts, const ClusterFacts& cluster, const PlanRequest& request)
      : cluster_(cluster), request_(request), placer_(facts, cluster, request) {}

  Result<std::vector<PlannedPlacement>> run() {
    for (size_t i = 0; i < cluster_.machines.size(); ++i) TRY(try_group({i}, 1));
    for (const Order& order : orders_of(cluster_)) {
      for (size_t count = 2; count <= order.size(); ++count) {
        const Order machines(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
        for (int stages = 1; stages <= static_cast<int>(count); ++stages) {
          if (count % static_cast<size_t>(stages) == 0) TRY(try_group(machines, stages));
        }
      }
      for (size_t size = 1; 2 * size <= order.size() && !request_.is_one_group; ++size) {
        TRY(try_replicas(order, size));
      }
    }
    // More groups than equal sizes allow: made of machines that differ.
    for (size_t count = most_groups() + 1; count <= cluster_.machines.size(); ++count) {
      bool fits = false;
      if (request_.is_one_group || are_alike()) break;
      for (const MachineGroups& groups : partitions(cluster_, count)) {
        if (TRY(try_partition(groups))) fits = true;
      }
      if (!fits) break;
    }
    return std::move(best_);
  }

 private:
  Status try_group(const Order& machines, int stages) {
    auto plan = TRY(placer_.place(machines, stages, request_.limits.streams));
    if (plan) keep(joined(kind_of(machines.size(), stages), {*std::move(plan)}));
    return Ok{};
  }

  // Neighbours of the order in groups of `size`; groups that the model does not fit are left out.
  Status try_replicas(const Order& order, size_t size) {
    const size_t groups_max = order.size() / size;
    for (int stages = 1; stages <= static_cast<int>(size); ++stages) {
      if (size % static_cast<size_t>(stages) != 0) continue;
      std::vector<GroupPlan> groups;
      const int streams = streams_of_each(groups_max);
      for (size_t i = 0; i < groups_max; ++i) {
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(i * size);
        auto plan =
            TRY(placer_.place({first, first + static_cast<std::ptrdiff_t>(size)}, stages, streams));
        if (plan && plan->misfits == 0) groups.push_back(*std::move(plan));
      }
      // If groups are left out, the others may have too little room for the promised streams.
      const bool has_room = static_cast<int>(groups.size()) * streams >= request_.limits.streams;
      if (groups.size() > 1 && has_room) keep(joined(PlacementKind::kReplicas, std::move(groups)));
    }
    return Ok{};
  }

  bool are_alike() const {
    const auto memory = cluster_.machines.front().memory_bytes;
    return cluster_.links.is_uniform() &&
           std::all_of(cluster_.machines.begin(), cluster_.machines.end(),
                       [&](const Machine& machine) { return machine.memory_bytes == memory; });
  }

  size_t most_groups() const {
    size_t most = 1;
    for (const PlannedPlacement& plan : best_) {
      most = std::max(most, plan.placement.groups.size());
    }
    return most;
  }

  // Groups of any machines, each tensor or pipeline, whichever is faster; false if one does not
  // fit.
  Result<bool> try_partition(const MachineGroups& machines) {
    const int streams = streams_of_each(machines.size());
    std::vector<GroupPlan> groups;
    for (const Order& own : machines) {
      std::vector<GroupPlan> ways;
      for (const int stages : std::set{1, static_cast<int>(own.size())}) {
        auto plan = TRY(placer_.place(own, stages, streams));
        if (plan && plan->misfits == 0) ways.push_back(*std::move(plan));
      }
      const auto fastest = std::max_element(
          ways.begin(), ways.end(),
          [](const GroupPlan& a, const GroupPlan& b) { return a.total_tok_s < b.total_tok_s; });
      if (fastest == ways.end()) return false;
      groups.push_back(std::move(*fastest));
    }
    keep(joined(PlacementKind::kReplicas, std::move(groups)));
    return true;
  }

  int streams_of_each(size_t groups) const {
    const int count = static_cast<int>(groups);
    return (request_.limits.streams + count - 1) / count;
  }

  PlannedPlacement joined(PlacementKind kind, std::vector<GroupPlan> groups) const {
    PlannedPlacement plan{.placement = {.kind = kind}, .streams = request_.limits.streams};
    bool has_prices = true, has_energy = true;
    double watts = 0;
    for (GroupPlan& group : groups) {
      const bool is_slowest = plan.decode_tok_s == 0 || group.decode_tok_s < plan.decode_tok_s;
      if (is_slowest) {
        plan.token = group.token;
        plan.decode_tok_s = group.decode_tok_s;
        plan.short_tok_s = group.short_tok_s;
        plan.draft_tok_s = group.draft_tok_s;
      }
      plan.total_tok_s += group.total_tok_s;
      plan.first_token_s = std::max(plan.first_token_s, group.first_token_s);
      has_energy &= group.joule_per_token > 0;
      watts += group.joule_per_token * group.total_tok_s;
      plan.misfits += group.misfits;
      plan.lacking_bytes += group.lacking_bytes;
      for (const PlacedGroup::Rank& rank : group.group.ranks) {
        const Machine& machine = cluster_.machines[rank.machine];
        plan.price_usd += machine.price_usd;
        has_prices &= machine.price_usd > 0;
        plan.has_estimates |= machine.has_estimates;
      }
      plan.placement.groups.push_back(std::move(group.group));
    }
    if (!has_prices) plan.price_usd = 0;
    if (has_energy) plan.joule_per_token = watts / plan.total_tok_s;
    return plan;
  }

  static bool is_better(const PlannedPlacement& a, const PlannedPlacement& b) {
    if (a.lacking_bytes != b.lacking_bytes) return a.lacking_bytes < b.lacking_bytes;
    return speed_of(a) > speed_of(b);
  }

  // Keeps the best per kind and number of machines and groups.
  void keep(PlannedPlacement plan) {
    for (PlannedPlacement& known : best_) {
      if (known.placement.kind != plan.placement.kind ||
          known.placement.groups.size() != plan.placement.groups.size() ||
          known.placement.machine_count() != plan.placement.machine_count()) {
        continue;
      }
      if (is_better(plan, known)) known = std::move(plan);
      return;
    }
    best_.push_back(std::move(plan));
  }

  const ClusterFacts& cluster_;
  const PlanRequest& request_;
  GroupPlacer placer_;
  std::vector<PlannedPlacement> best_;
};

// The fastest, without additional machines for next to no gain.
void put_choice_first(std::vector<PlannedPlacement>& fitting) {
  if (fitting.empty()) return;
  const double enough = speed_of(fitting.front()) / kWorthAnotherMachine;
  auto choice = fitting.begin();
  for (auto plan = fitting.begin(); plan != fitting.end(); ++plan) {
    const bool is_smaller = plan->placement.machine_count() < choice->placement.machine_count();
    if (speed_of(*plan) >= enough && is_smaller) choice = plan;
  }
  std::rotate(fitting.begin(), choice, choice + 1);
}

Status check(const ModelFacts& facts, const ClusterFacts& cluster, const PlanRequest& request) {
  const LoadLimits& limits = request.limits;
  if (cluster.machines.empty() || cluster.machines.size() > kPlannedMachinesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a plan is made for 1 to {} machines, not {}", kPlannedMachinesMax,
                             cluster.machines.size())};
  }
  if (limits.context < 1 || limits.context > facts.config.positions_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a context of {} was requested, the model has {} positions",
                             limits.context, facts.config.positions_max)};
  }
  if (limits.streams < 1 || request.prompt_tokens < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "a plan needs at least one stream and a prompt of one token"};
  }
  return Ok{};
}

}  // namespace

std::string_view placement_kind_name(PlacementKind kind) {
  constexpr std::string_view kNames[] = {"one machine", "tensor", "pipeline", "tensor x pipeline",
                                         "replicas"};
  return kNames[static_cast<size_t>(kind)];
}

Result<ModelPlan> plan_model(const ModelFacts& facts, const ClusterFacts& cluster,
                             const PlanRequest& request) {
  TRY(check(facts, cluster, request));
  ModelPlan plan;
  for (PlannedPlacement& placement : TRY(Search(facts, cluster, request).run())) {
    (placement.misfits == 0 ? plan.fitting : plan.refused).push_back(std::move(placement));
  }
  std::stable_sort(plan.fitting.begin(), plan.fitting.end(),
                   [](const auto& a, const auto& b) { return speed_of(a) > speed_of(b); });
  std::stable_sort(plan.refused.begin(), plan.refused.end(),
                   [](const auto& a, const auto& b) { return a.lacking_bytes < b.lacking_bytes; });
  put_choice_first(plan.fitting);
  plan.explanation = explain(facts, cluster, request, plan);
  return plan;
}

}  // namespace lockstep
