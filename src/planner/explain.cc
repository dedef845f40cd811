#include "planner/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace lockstep {
namespace {

bool is_one(const PlannedPlacement& plan) {
  return plan.placement.kind == PlacementKind::kOne;
}

std::string speed_text(const PlannedPlacement& plan) {
  if (plan.streams == 1) return fmt::format("{:.1f} tok/s", plan.decode_tok_s);
  return fmt::format("{:.1f} tok/s of {} streams together", plan.total_tok_s, plan.streams);
}

std::string time_text(const PlannedPlacement& plan) {
  const StepTime& token = plan.token;
  const double all = token.total();
  std::string text =
      fmt::format("Of the {:.1f} ms that a token of one stream takes there", all / 1e3);
  struct Part {
    const char* name;
    double us;
  };
  const Part parts[] = {{"reading weights", token.weights},
                        {"reading keys and values", token.state},
                        {"the overhead of operations", token.kernels},
                        {"arithmetic", token.compute},
                        {"exchanges", token.exchange},
                        {"hops between stages", token.hops}};
  const char* before = ", ";
  for (const Part& part : parts) {
    if (part.us < 0.005 * all) continue;
    text += fmt::format("{}{:.0f} % are {}", before, 100 * part.us / all, part.name);
    before = "; ";
  }
  return text + ". ";
}

// The part of the cut weights that each rank reads, if shares are not equal.
std::string shares_text(const ClusterFacts& cluster, const PlannedPlacement& plan) {
  const PlacedGroup& group = plan.placement.groups.front();
  double sum = 0;
  const PlacedGroup::Rank* largest = &group.ranks.front();
  for (const PlacedGroup::Rank& rank : group.ranks) {
    sum += rank.share;
    if (rank.share > largest->share) largest = &rank;
  }
  const double part = largest->share / sum;
  if (part * static_cast<double>(group.ranks.size()) < 1.01) return "";
  return fmt::format("{} takes the largest share, {:.1f} %. ",
                     cluster.machines[largest->machine].name, 100 * part);
}

const PlannedPlacement* find_if(const std::vector<PlannedPlacement>& plans, bool wants_one) {
  const auto found = std::find_if(plans.begin(), plans.end(), [&](const PlannedPlacement& plan) {
    return is_one(plan) == wants_one;
  });
  return found == plans.end() ? nullptr : &*found;
}

std::string alternatives_text(const ClusterFacts& cluster, const ModelPlan& plan) {
  if (is_one(plan.fitting.front())) {
    if (const PlannedPlacement* more = find_if(plan.fitting, false)) {
      return fmt::format(
          "One machine alone is better: the best with more machines, {}, would reach {}. ",
          placement_text(more->placement), speed_text(*more));
    }
    const PlannedPlacement* more = find_if(plan.refused, false);
    return more ? fmt::format("Placements over more machines do not fit. ") : "";
  }
  if (const PlannedPlacement* one = find_if(plan.fitting, true)) {
    return fmt::format("One machine alone would reach {}. ", speed_text(*one));
  }
  const PlannedPlacement* one = find_if(plan.refused, true);
  return one ? fmt::format("One machine alone cannot hold the model: {}. ",
                           lack_text(cluster, *one))
             : "";
}

std::string next_text(const ModelPlan& plan) {
  for (size_t i = 1; i < plan.fitting.size(); ++i) {
    const PlannedPlacement& next = plan.fitting[i];
    const Placement& own = plan.fitting.front().placement;
    if (is_one(next) || is_one(plan.fitting.front()) || next.placement.kind == own.kind) continue;
    return fmt::format("The next best placement, {}, would reach {}. ",
                       placement_text(next.placement), speed_text(next));
  }
  return "";
}

// "dgx-spark", "studio-1, studio-2 and 2 more"
std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kNamesMax = 3;
  const size_t shown = names.size() > kNamesMax ? kNamesMax - 1 : names.size();
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Whose figures the choice stands on, as far as that is known.
std::string origins_text(const ClusterFacts& cluster, const Placement& placement) {
  std::vector<std::string> measured, published;
  for (const PlacedGroup& group : placement.groups) {
    for (const PlacedGroup::Rank& rank : group.ranks) {
      const Machine& machine = cluster.machines[rank.machine];
      if (machine.is_other_software) {
        published.push_back(machine.name);
      } else if (!machine.measured_on.empty()) {
        measured.push_back(fmt::format("{} on {}", machine.name, machine.measured_on));
      }
    }
  }
  std::string text;
  if (!measured.empty()) {
    text += fmt::format("Measured with lockstep itself: {}. ", names_text(measured));
  }
  if (!published.empty()) {
    text += fmt::format(
        "The figures of {} are those of published software for GPUs, an estimate of what lockstep "
        "reaches there. ",
        names_text(published));
  }
  return text;
}

std::string group_text(const PlacedGroup& group) {
  if (group.ranks.size() == 1) return "alone";
  if (group.stages == 1) return "tensor";
  if (static_cast<size_t>(group.stages) == group.ranks.size()) return "pipeline";
  return fmt::format("{} stages of {}", group.stages,
                     group.ranks.size() / static_cast<size_t>(group.stages));
}

// "2 replicas of 2 machines each (tensor)", "3 replicas of 1 to 4 machines"
std::string replicas_text(const std::vector<PlacedGroup>& groups) {
  const auto by_size = [](const PlacedGroup& a, const PlacedGroup& b) {
    return a.ranks.size() < b.ranks.size();
  };
  const auto [least, most] = std::minmax_element(groups.begin(), groups.end(), by_size);
  const size_t fewest = least->ranks.size(), largest = most->ranks.size();
  if (fewest != largest) {
    return fmt::format("{} replicas of {} to {} machines", groups.size(), fewest, largest);
  }
  const std::string way = group_text(groups.front());
  const bool are_alike = std::all_of(groups.begin(), groups.end(), [&](const PlacedGroup& group) {
    return group_text(group) == way;
  });
  return fmt::format("{} replicas of {} machine{} each{}", groups.size(), fewest,
                     fewest == 1 ? "" : "s", are_alike ? fmt::format(" ({})", way) : "");
}

}  // namespace

std::string gib_text(uint64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (uint64_t{1} << 30));
}

std::string placement_text(const Placement& placement) {
  const PlacedGroup& group = placement.groups.front();
  if (placement.kind == PlacementKind::kReplicas) {
    return replicas_text(placement.groups);
  }
  if (placement.kind == PlacementKind::kOne) return "one machine";
  if (placement.kind == PlacementKind::kTensorPipeline) {
    return fmt::format("a pipeline of {} machines each (tensor)", group_text(group));
  }
  return fmt::format("{} over {} machines", placement_kind_name(placement.kind),
                     group.ranks.size());
}

std::string lack_text(const ClusterFacts& cluster, const PlannedPlacement& plan) {
  const PlacedGroup::Rank* worst = nullptr;
  uint64_t most = 0;
  for (const PlacedGroup& group : plan.placement.groups) {
    for (const PlacedGroup::Rank& rank : group.ranks) {
      const uint64_t needed = rank.memory.total(),
                     has = cluster.machines[rank.machine].memory_bytes;
      if (needed <= has || needed - has <= most) continue;
      most = needed - has;
      worst = &rank;
    }
  }
  if (!worst) return "";
  const Machine& machine = cluster.machines[worst->machine];
  return fmt::format("{} would need {} and has {}", machine.name, gib_text(worst->memory.total()),
                     gib_text(machine.memory_bytes));
}

std::string ngrams_hint(const ModelFacts& facts) {
  double bytes = 0;
  for (const LayerClass& layer : facts.classes) {
    for (const StoredWeight& one : layer.weights) {
      if (one.weight.role != Role::kNgramRows) continue;
      bytes += one.element_bytes * one.weight.rows * one.weight.columns;
    }
  }
  if (bytes == 0) return "";
  return fmt::format(
      "; {} of the model are a table of n-grams, which --ngrams-on-disk leaves on the disk",
      gib_text(static_cast<uint64_t>(bytes)));
}

std::string explain(const ModelFacts& facts, const ClusterFacts& cluster,
                    const PlanRequest& request, const ModelPlan& plan) {
  if (plan.fitting.empty()) {
    const PlannedPlacement& nearest = plan.refused.front();
    return fmt::format(
        "The model does not fit. The closest placement is {}, where {}; all ranks together lack "
        "{}. Fewer bits, a shorter context, fewer streams or more memory would help{}.",
        placement_text(nearest.placement), lack_text(cluster, nearest),
        gib_text(nearest.lacking_bytes), ngrams_hint(facts));
  }
  const PlannedPlacement& choice = plan.fitting.front();
  std::string text =
      fmt::format("{} is the choice: {}", placement_text(choice.placement), speed_text(choice));
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (choice.streams > 1) text += fmt::format(", {:.1f} tok/s of one alone", choice.decode_tok_s);
  text += fmt::format(" at the whole context ({:.1f} at its beginning). ", choice.short_tok_s);
  if (choice.draft_tok_s > 0) {
    text += fmt::format(
        "If {:.0f} % of the draft {}'s guesses are right, one stream has {:.1f} tok/s there. ",
        100 * request.draft_right, request.draft_model ? "model" : "layer", choice.draft_tok_s);
  }
  text += time_text(choice) + shares_text(cluster, choice) + alternatives_text(cluster, plan) +
          next_text(plan);
  if (facts.config.experts.count > 0 &&
      choice.token.exchange + choice.token.kernels > choice.token.weights) {
    text +=
        "Few of the experts' weights are read for a token, so that exchanges and the overhead "
        "of operations count for more than reading. ";
  }
  text += origins_text(cluster, choice.placement);
  if (choice.has_estimates) text += "Some figures of these machines are estimates. ";
  text.pop_back();
  return text;
}

}  // namespace lockstep
