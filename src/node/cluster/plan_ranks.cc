#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "node/cluster/cluster_plan.h"
#include "planner/explain.h"
#include "planner/facts/measured_machine.h"
#include "planner/partition.h"
#include "planner/plan.h"

namespace lockstep {
namespace {

// For a pair not measured yet: a switch, and 1 Gbit/s Ethernet minus its headers.
constexpr double kLatencyUsUnknown = 100;
constexpr double kBytesPerUsUnknown = 117;
constexpr double kShmLatencyUs = 1;
constexpr double kShmBytesPerUs = 5'000;

// The nodes of a plan; one that is to hold several ranks is listed as often, to be divided evenly.
using Places = std::vector<const NodeOffer*>;

std::optional<int64_t> measured_us(const NodeOffer& from, const NodeId& to) {
  for (const RoundTrip& trip : from.round_trips) {
    if (trip.node == to && trip.us > 0) return trip.us;
  }
  return std::nullopt;
}

// In steps of the square root of 2, so that links of one kind look alike and plans do not change
// with small fluctuations.
double latency_us(const NodeOffer& a, const NodeOffer& b) {
  const auto there = measured_us(a, b.node), back = measured_us(b, a.node);
  if (!there && !back) return kLatencyUsUnknown;
  const int64_t round_trip_us = std::min(there.value_or(INT64_MAX), back.value_or(INT64_MAX));
  const double one_way = std::max(1.0, static_cast<double>(round_trip_us) / 2);
  return std::exp2(std::round(2 * std::log2(one_way)) / 2);
}

double bytes_per_us(const NodeOffer& offer) {
  return offer.link_bytes_s > 0 ? static_cast<double>(offer.link_bytes_s) / 1e6
                                : kBytesPerUsUnknown;
}

// Nodes with free memory, the most first; each repeated as the requested number of ranks requires.
Places places_of(std::span<const NodeOffer> offers, size_t ranks) {
  Places nodes;
  for (const NodeOffer& offer : offers) {
    if (offer.free_bytes > 0) nodes.push_back(&offer);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const NodeOffer* a, const NodeOffer* b) {
    return a->free_bytes > b->free_bytes;
  });
  if (nodes.size() > kPlannedMachinesMax) nodes.resize(kPlannedMachinesMax);
  Places places;
  const size_t copies =
      nodes.empty() ? 0 : std::max<size_t>(1, (ranks + nodes.size() - 1) / nodes.size());
  for (const NodeOffer* node : nodes) {
    for (size_t i = 0; i < copies && places.size() < kPlannedMachinesMax; ++i) {
      places.push_back(node);
    }
  }
  return places;
}

ClusterFacts cluster_of(const Places& places) {
  ClusterFacts cluster{{}, LinkTable(0, {})};
  std::vector<std::optional<LinkFigures>> direct;
  for (const NodeOffer* place : places) {
    const NodeOffer& offer = *place;
    const auto alike = std::count(places.begin(), places.end(), place);
    cluster.machines.push_back(measured_machine(
        "node " + offer.name, static_cast<uint64_t>(offer.free_bytes / alike),
        {.read_bytes_s = offer.speed / alike, .operations_s = offer.operations_s / alike}));
    for (const NodeOffer* other : places) direct.push_back(link_between(offer, *other));
  }
  cluster.links = LinkTable(places.size(), std::move(direct));
  return cluster;
}

// A user's wishes for how a model is cut.
struct Wish {
  size_t ranks = 0;  // 0: any number
  Parallelism parallelism = Parallelism::kAuto;

  bool allows(const PlannedPlacement& plan) const {
    if (plan.placement.groups.size() != 1) return false;
    const PlacedGroup& group = plan.placement.groups.front();
    if (ranks != 0 && group.ranks.size() != ranks) return false;
    switch (parallelism) {
      case Parallelism::kAuto:
        return true;
      case Parallelism::kTensor:
        return group.stages == 1;
      case Parallelism::kPipeline:
        return group.stages == static_cast<int>(group.ranks.size());
    }
    return true;
  }

  // "2 ranks in pipeline"
  std::string text() const {
    const std::string count = ranks == 0 ? "any number of ranks" : fmt::format("{} ranks", ranks);
    if (parallelism == Parallelism::kAuto) return count;
    return fmt::format("{} in {}", count, name_in(kParallelisms, parallelism));
  }
};

// How placements that fit are ranked.
struct Preference {
  bool has_streams = false;       // speed of all streams together; else of one
  bool is_for_few_nodes = false;  // fewest machines before speed
};

// The fastest, without extra machines for negligible gain, as plan_model() chooses among all.
const PlannedPlacement* best_group(const std::vector<PlannedPlacement>& plans, const Wish& wish,
                                   const Preference& preference) {
  const auto speed = [&](const PlannedPlacement& plan) {
    return preference.has_streams ? plan.total_tok_s : plan.decode_tok_s;
  };
  double fastest = 0;
  for (const PlannedPlacement& plan : plans) {
    if (wish.allows(plan)) fastest = std::max(fastest, speed(plan));
  }
  const PlannedPlacement* best = nullptr;
  for (const PlannedPlacement& plan : plans) {
    const bool is_slow = speed(plan) * kWorthAnotherMachine < fastest;
    if (!wish.allows(plan) || (is_slow && !preference.is_for_few_nodes)) continue;
    const size_t machines = plan.placement.machine_count();
    const size_t least = best == nullptr ? SIZE_MAX : best->placement.machine_count();
    const bool is_faster = best != nullptr && machines == least && speed(plan) > speed(*best);
    if (machines < least || is_faster) best = &plan;
  }
  return best;
}

RankPlan ranks_of(const PlacedGroup& group, const Places& places) {
  double largest = 0;
  for (const PlacedGroup::Rank& rank : group.ranks) largest = std::max(largest, rank.share);
  constexpr double kLargestShare = int64_t{1} << 38;
  RankPlan plan{.ranks = {}, .stages = group.stages};
  for (const PlacedGroup::Rank& rank : group.ranks) {
    const int64_t share = std::llround(rank.share / largest * kLargestShare);
    plan.ranks.push_back({.node = places[rank.machine]->node,
                          .bytes = static_cast<int64_t>(rank.memory.total()),
                          .share = std::max<int64_t>(1, share)});
  }
  return plan;
}

Error refusal(const DesiredEntry& entry, const PlannedModel& model, const ModelPlan& plan,
              const ClusterFacts& cluster, const Wish& wish) {
  const auto nearest = std::find_if(plan.refused.begin(), plan.refused.end(),
                                    [&](const PlannedPlacement& one) { return wish.allows(one); });
  if (nearest == plan.refused.end()) {
    return {ErrorCode::kExhausted,
            fmt::format("model '{}' cannot be placed on {} with what {} nodes have free",
                        entry.name, wish.text(), cluster.machines.size())};
  }
  return {
      ErrorCode::kExhausted,
      fmt::format("model '{}' needs {} more than there is: in the nearest placement, {}, {}{}",
                  entry.name, gib_text(nearest->lacking_bytes), placement_text(nearest->placement),
                  lack_text(cluster, *nearest), ngrams_hint(model.facts))};
}

struct PlannedGroup {
  RankPlan plan;
  double total_tok_s = 0;
};

Result<PlannedGroup> plan_group(const DesiredEntry& entry, const PlannedModel& model,
                                std::span<const NodeOffer> offers, bool is_for_few_nodes) {
  const ModelPromises& promises = entry.promises;
  const PlannedLimits limits = TRY(planned_limits(model.facts.config, promises));
  TRY(model.check_context(limits.context));
  if (promises.parallel > static_cast<int64_t>(kPlacementRanksMax)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("model '{}' asks for {} ranks, the maximum is {}", entry.name,
                             promises.parallel, kPlacementRanksMax)};
  }
  const Wish wish{static_cast<size_t>(promises.parallel), promises.parallelism};
  const Places places = places_of(offers, wish.ranks);
  if (places.empty()) {
    return Error{ErrorCode::kExhausted, fmt::format("none of {} nodes has free memory for '{}'",
                                                    offers.size(), entry.name)};
  }
  const ClusterFacts cluster = cluster_of(places);
  const PlanRequest request{
      .limits = {.context = limits.context,
                 .streams = limits.streams,
                 .batch_tokens_max = std::max(kBatchTokensDefault, limits.streams),
                 .kv = kv_of(false, limits.kv)},
      .is_one_group = true,
      .draft_model = model.draft_facts()};
  const ModelPlan plan = TRY(plan_model(model.facts, cluster, request));
  const PlannedPlacement* best =
      best_group(plan.fitting, wish,
                 {.has_streams = promises.streams > 1, .is_for_few_nodes = is_for_few_nodes});
  if (best == nullptr) return refusal(entry, model, plan, cluster, wish);
  return PlannedGroup{ranks_of(best->placement.groups.front(), places), best->total_tok_s};
}

// One group on the nodes of each part, if all fit.
struct PlannedGroups {
  std::vector<RankPlan> plans;
  double total_tok_s = 0;
};
std::optional<PlannedGroups> plan_parts(const DesiredEntry& entry, const PlannedModel& model,
                                        const Places& places, const MachineGroups& parts,
                                        bool is_for_few_nodes) {
  PlannedGroups groups;
  for (const MachineOrder& part : parts) {
    std::vector<NodeOffer> offers;
    for (const size_t machine : part) offers.push_back(*places[machine]);
    auto group = plan_group(entry, model, offers, is_for_few_nodes);
    if (!group.ok()) return std::nullopt;
    groups.plans.push_back(std::move(group.value().plan));
    groups.total_tok_s += group.value().total_tok_s;
  }
  return groups;
}

}  // namespace

LinkFigures link_between(const NodeOffer& a, const NodeOffer& b) {
  if (a.node == b.node) {
    return {.kind = LinkKind::kShm, .latency_us = kShmLatencyUs, .bytes_per_us = kShmBytesPerUs};
  }
  return {.kind = LinkKind::kTcp,
          .latency_us = latency_us(a, b),
          .bytes_per_us = std::min(bytes_per_us(a), bytes_per_us(b))};
}

Result<std::optional<KvKind>> promised_kv(const ModelPromises& promises) {
  if (promises.kv.empty()) return std::optional<KvKind>();
  return std::optional(TRY(parse_kv_kind(promises.kv)));
}

Result<PlannedLimits> planned_limits(const ModelConfig& config, const ModelPromises& promises) {
  PlannedLimits limits{.context = TRY(context_for(config, promises.context))};
  limits.kv = TRY(promised_kv(promises));
  if (promises.streams > kPlannedStreamsMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} streams were requested, the maximum is {}", promises.streams,
                             kPlannedStreamsMax)};
  }
  if (promises.streams > 0) {
    const int64_t each = (promises.streams + promises.replicas - 1) / promises.replicas;
    limits.streams = static_cast<int>(each);
  }
  return limits;
}

Result<std::vector<RankPlan>> plan_groups(const DesiredEntry& entry, const PlannedModel& model,
                                          size_t groups, std::span<const NodeOffer> offers) {
  const Places places = places_of(offers, 1);
  const ClusterFacts cluster = cluster_of(places);
  for (size_t count = std::min(groups, places.size()); count > 1; --count) {
    // If some groups do not fit, the others leave as many nodes as possible for later ones.
    const bool is_for_few_nodes = count < groups;
    std::optional<PlannedGroups> best;
    for (const MachineGroups& parts : partitions(cluster, count)) {
      auto found = plan_parts(entry, model, places, parts, is_for_few_nodes);
      if (found && (!best || found->total_tok_s > best->total_tok_s)) best = std::move(found);
    }
    if (best) return std::move(best->plans);
  }
  return std::vector{TRY(plan_group(entry, model, offers, groups > 1)).plan};
}

}  // namespace lockstep
