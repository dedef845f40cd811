#include "cli/text/plan_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cli/text/output.h"
#include "planner/explain.h"

namespace lockstep {
namespace {

// The table omits further ranks of the choice; --json has all.
constexpr size_t kRanksShown = 32;

std::string known_text(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-";
}

uint64_t largest_memory(const PlannedPlacement& plan) {
  uint64_t most = 0;
  for (const PlacedGroup& group : plan.placement.groups) {
    for (const PlacedGroup::Rank& rank : group.ranks) most = std::max(most, rank.memory.total());
  }
  return most;
}

void print_placement(const PlannedPlacement& plan, bool is_choice) {
  print_line(fmt::format("{} {:<44} {:>8.1f} {:>8.1f} {:>8.1f} {:>9} {:>8} {:>11}",
                         is_choice ? "*" : " ", placement_text(plan.placement), plan.short_tok_s,
                         plan.decode_tok_s, plan.total_tok_s, known_text(plan.first_token_s, 2),
                         known_text(plan.joule_per_token, 1), gib_text(largest_memory(plan))));
}

void print_planned_ranks(const ClusterFacts& cluster, const Placement& placement) {
  print_line(fmt::format("\n  {:<24} {:>7} {:>9} {:>11} {:>11} {:>11} {:>11} {:>11}", "machine",
                         "share", "layers", "weights", "state", "other", "in all", "available"));
  size_t shown = 0;
  for (const PlacedGroup& group : placement.groups) {
    double sum = 0;
    for (const PlacedGroup::Rank& rank : group.ranks) sum += rank.share;
    for (const PlacedGroup::Rank& rank : group.ranks) {
      if (++shown > kRanksShown) continue;
      const Machine& machine = cluster.machines[rank.machine];
      const RankMemory& memory = rank.memory;
      const uint64_t weights = memory.packed_bytes + memory.vector_bytes;
      print_line(fmt::format("  {:<24} {:>5.1f} % {:>9} {:>11} {:>11} {:>11} {:>11} {:>11}",
                             machine.name, 100 * rank.share / sum,
                             fmt::format("{}-{}", rank.layers.begin, rank.layers.end - 1),
                             gib_text(weights), gib_text(memory.state_bytes),
                             gib_text(memory.buffer_bytes + memory.process_bytes),
                             gib_text(memory.total()), gib_text(machine.memory_bytes)));
    }
  }
  if (shown > kRanksShown) print_line(fmt::format("  and {} more", shown - kRanksShown));
}

// Breaks lines between words.
void print_paragraph(std::string_view text) {
  constexpr size_t kColumns = 100;
  while (text.size() > kColumns) {
    size_t end = text.rfind(' ', kColumns);
    if (end == std::string_view::npos || end == 0) end = kColumns;
    print_line(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  print_line(text);
}

std::string bits_text(const PublishedPoint& point) {
  if (point.expert_bits == point.other_bits) return fmt::format("{:.1f}", point.other_bits);
  return fmt::format("{:.1f}/{:.0f}", point.expert_bits, point.other_bits);
}

}  // namespace

void print_plan(const PlanSubject& subject, const ClusterFacts& cluster, const ModelPlan& plan) {
  const PlanRequest& request = subject.request;
  print_line(fmt::format("{}{}{}, a context of {} (keys and values in {}) for {}, {}",
                         subject.model, subject.format.empty() ? "" : " as ", subject.format,
                         request.limits.context, kv_kind_name(request.limits.kv),
                         counted(static_cast<uint64_t>(request.limits.streams), "stream"),
                         counted(cluster.machines.size(), "machine")));
  if (!plan.fitting.empty()) {
    print_line(fmt::format("\n  {:<44} {:>26} {:>9} {:>8} {:>11}", "", "tok/s: short, full, all",
                           "first", "J/token", "memory"));
    print_line(fmt::format("  {:<44} {:>26} {:>9}", "placement", "",
                           fmt::format("of {}, s", request.prompt_tokens)));
    for (const PlannedPlacement& fitting : plan.fitting) {
      print_placement(fitting, &fitting == &plan.fitting.front());
    }
    print_planned_ranks(cluster, plan.fitting.front().placement);
  }
  if (!plan.refused.empty()) print_line("\nDo not fit:");
  for (const PlannedPlacement& other : plan.refused) {
    print_line(fmt::format("  {}: {}", placement_text(other.placement), lack_text(cluster, other)));
  }
  print_line("");
  print_paragraph(plan.explanation);
}

Json check_json(const CheckResult& result, bool is_fitted) {
  JsonArray points;
  for (const CheckedPoint& checked : result.points) {
    points.push_back(JsonObject{{"model", checked.point.model},
                                {"nodes", checked.point.nodes},
                                {"predicted_tok_s", checked.predicted_tok_s},
                                {"measured_tok_s", checked.point.measured_tok_s},
                                {"error_percent", 100 * checked.error()},
                                {"own_cut_tok_s", checked.own_cut_tok_s},
                                {"own_tok_s", checked.own_tok_s}});
  }
  const PublishedConstants& constants = result.constants;
  return JsonObject{{"rms_percent", 100 * result.rms},
                    {"worst_percent", 100 * result.worst},
                    {"points", std::move(points)},
                    {"fitted", is_fitted},
                    {"constants", JsonObject{{"efficiency", constants.efficiency},
                                             {"kernel_us", constants.kernel_us},
                                             {"exchange_us", constants.exchange_us}}}};
}

void print_check(const CheckResult& result, bool is_fitted) {
  print_line(fmt::format("{:<20} {:>6} {:>6} {:>10} {:>10} {:>8} {:>9} {:>14}", "model", "bits",
                         "nodes", "measured", "predicted", "error", "own cut", "and overhead"));
  for (const CheckedPoint& checked : result.points) {
    print_line(fmt::format("{:<20} {:>6} {:>6} {:>10.1f} {:>10.1f} {:>+6.1f} % {:>9.1f} {:>14.1f}",
                           checked.point.model, bits_text(checked.point), checked.point.nodes,
                           checked.point.measured_tok_s, checked.predicted_tok_s,
                           100 * checked.error(), checked.own_cut_tok_s, checked.own_tok_s));
  }
  const PublishedConstants& constants = result.constants;
  print_line(fmt::format(
      "rms {:.1f} %, worst {:.1f} %, with {} constants: {:.3f} of the bandwidth, {:.2f} us for an "
      "operation, {:.1f} us for an exchange",
      100 * result.rms, 100 * result.worst, is_fitted ? "fitted" : "the shipped",
      constants.efficiency, constants.kernel_us, constants.exchange_us));
  print_paragraph(fmt::format(
      "All in tok/s. \"own cut\" is what the same machines would reach with lockstep's cut (LM "
      "head and latents too), \"and overhead\" what they would reach with exchanges of {:.0f} us "
      "and {:.0f} % of the overhead of operations, too: a goal, not a measurement.",
      kOwnExchangeUs, 100 * kOwnKernelPart));
}

}  // namespace lockstep
