#include "cli/bench/placement_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cli/bench/emulated_clusters.h"
#include "cli/bench/model_bench.h"
#include "cli/text/output.h"
#include "model/load/open_model.h"
#include "node/network/collective_bench.h"
#include "node/network/link_probe.h"
#include "planner/plan.h"

namespace lockstep {
namespace {

constexpr int kContext = 64;
constexpr int kDraftedTokens = 192, kDraftedContext = 256;
constexpr int kPlacementExchangeRounds = 2'000;
constexpr int kPairsProbed = 6;  // at least
// As good as the best: the allowed loss of a choice, and the allowed error of a prediction.
constexpr double kChoiceSlack = 0.05;
constexpr double kPredictionSlack = 0.15;

// One cluster being measured.
struct PlacementSubject {
  const PlacementBenchFlags& flags;
  const EmulatedCluster& cluster;
  std::string model;
  ModelFacts facts;
  PlanRequest request{.limits = {.context = kContext}, .prompt_tokens = 1};

  bool has_drafts() const { return facts.config.has_draft_layer(); }
  // The number of guesses that pays must be found first.
  int new_tokens() const { return has_drafts() ? kDraftedTokens : flags.new_tokens; }
  int hidden() const { return facts.config.hidden; }
};

// A group of emulated machines, in the order of ranks.
struct EmulatedGroup {
  std::vector<EmulatedMachine> machines;
  std::vector<double> shares;
  int stages = 1;
};

Result<std::vector<double>> measure_placement(const PlacementSubject& subject,
                                              const std::vector<EmulatedGroup>& wishes,
                                              bool has_drafts = false) {
  std::vector<std::unique_ptr<GroupSupervisor>> groups;
  std::vector<ModelService*> models;
  for (const EmulatedGroup& wish : wishes) {
    GroupSupervisorOptions options;
    GroupSpec& spec = options.spec;
    spec.model = subject.model;
    spec.shares = wish.shares;
    spec.link.stages = wish.stages;
    spec.link.delay_us = subject.cluster.delay_us;
    spec.link.gbit_s = subject.cluster.gbit_s;
    spec.threads = 1;
    spec.context = subject.request.limits.context;
    spec.draft_layer = has_drafts;
    spec.device = emulated_devices(wish.machines);
    groups.push_back(TRY(start_group(options)));
    models.push_back(groups.back().get());
  }
  ModelBenchFlags bench;
  bench.prompt_tokens = 1;
  bench.new_tokens = subject.new_tokens();
  bench.repetitions = subject.flags.repetitions;
  std::vector<double> token_us;
  for (const ModelTimes& times : TRY(measure_in_turn(models, bench))) {
    token_us.push_back(times.token_s * 1e6);
  }
  return token_us;
}

// The links' figures as a probe sees them, and an exchange's additional time. All links are alike,
// so the best of several pairs counts: ranks that share cores may wait for these.
struct MeasuredLinks {
  LinkFigures link;
  double exchange_us = 0;
};

Result<MeasuredLinks> measure_links(const PlacementSubject& subject) {
  MeasuringOptions probe;
  probe.ranks = static_cast<int>(subject.cluster.machines.size());
  probe.link.delay_us = subject.cluster.delay_us;
  probe.link.gbit_s = subject.cluster.gbit_s;
  probe.pin_threads = false;  // like the measured groups
  LinkFigures link{.kind = LinkKind::kShm, .latency_us = std::numeric_limits<double>::max()};
  const int ranks = probe.ranks;
  for (int pairs = 0; pairs < kPairsProbed; pairs += ranks * (ranks - 1) / 2) {
    for (const PairTimes& pair : TRY(probe_processes(probe))) {
      link.latency_us = std::min(link.latency_us, pair.p50_us);
      link.bytes_per_us = std::max(link.bytes_per_us, pair.gbit_s * 1e3 / 8);
    }
  }
  CollectiveBenchOptions exchange;
  exchange.bytes = static_cast<size_t>(subject.hidden()) * sizeof(float);
  exchange.rounds = kPlacementExchangeRounds;
  const double p50_us = TRY(bench_collective_processes(exchange)).p50_us;
  return MeasuredLinks{link, p50_us};
}

// The planner's prediction for one machine alone, with enough memory.
Result<PlannedPlacement> plan_alone(const PlacementSubject& subject, double read_bytes_per_us,
                                    double kernel_us) {
  const Machine machine{.name = "alone",
                        .memory_bytes = uint64_t{1} << 50,
                        .read_bytes_per_us = read_bytes_per_us,
                        .kernel_us = kernel_us};
  const ClusterFacts alone{{machine}, LinkTable(1, {std::nullopt})};
  return TRY(plan_model(subject.facts, alone, subject.request)).fitting.front();
}

bool is_as_fast(const EmulatedMachine& a, const EmulatedMachine& b) {
  return a.read_gb_s == b.read_gb_s && a.kernel_us == b.kernel_us;
}

// Measures each kind of machine running the model alone; the memory is the cluster's.
Result<std::vector<Machine>> measure_machines(const PlacementSubject& subject, double exchange_us) {
  std::vector<EmulatedMachine> kinds;
  for (const EmulatedMachine& machine : subject.cluster.machines) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const EmulatedMachine& kind) {
      return is_as_fast(kind, machine);
    });
    if (known == kinds.end()) kinds.push_back(machine);
  }
  std::vector<EmulatedGroup> alone;
  for (const EmulatedMachine& kind : kinds) alone.push_back({.machines = {kind}, .shares = {1}});
  const std::vector<double> token_us = TRY(measure_placement(subject, alone));
  std::vector<Machine> machines;
  for (const EmulatedMachine& machine : subject.cluster.machines) {
    size_t kind = 0;
    while (!is_as_fast(kinds[kind], machine)) ++kind;
    const PlannedPlacement plan = TRY(plan_alone(subject, 1, machine.kernel_us));
    const double read_us = token_us[kind] - plan.token.kernels;
    const RankMemory& memory = plan.placement.groups.front().ranks.front().memory;
    const auto model_bytes = static_cast<double>(memory.total() - memory.process_bytes);
    machines.push_back(
        {.name = fmt::format("machine-{}", machines.size() + 1),
         .memory_bytes = memory.process_bytes + static_cast<uint64_t>(machine.memory * model_bytes),
         .read_bytes_per_us = plan.token.weights / std::max(read_us, 1.0),
         .kernel_us = machine.kernel_us,
         .exchange_us = exchange_us});
  }
  return machines;
}

EmulatedGroup group_of(const PlacementSubject& subject, const PlacedGroup& placed) {
  EmulatedGroup group{.machines = {}, .shares = {}, .stages = placed.stages};
  for (const PlacedGroup::Rank& rank : placed.ranks) {
    group.machines.push_back(subject.cluster.machines[rank.machine]);
    group.shares.push_back(rank.share);
  }
  return group;
}

// With a draft layer that is always right, of placements that use it.
Status add_measured_drafts(const PlacementSubject& subject,
                           const std::vector<PlannedPlacement>& plans,
                           const std::vector<EmulatedGroup>& groups, JsonArray& placements) {
  std::vector<EmulatedGroup> drafting;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].draft_tok_s == 0) continue;
    drafting.push_back(groups[i]);
    numbers.push_back(i);
  }
  const std::vector<double> token_us = TRY(measure_placement(subject, drafting, true));
  for (size_t i = 0; i < numbers.size(); ++i) {
    JsonObject& placement = placements[numbers[i]].as_object();
    const double measured = 1e6 / token_us[i], predicted = plans[numbers[i]].draft_tok_s;
    const double gain = measured / placement.at("measured_tok_s").to_number<double>();
    const double predicted_gain = predicted / plans[numbers[i]].decode_tok_s;
    placement["predicted_draft_tok_s"] = predicted;
    placement["measured_draft_tok_s"] = measured;
    placement["predicted_speed_up"] = predicted_gain;
    placement["measured_speed_up"] = gain;
    placement["speed_up_error"] = predicted_gain / gain - 1;
  }
  return Ok{};
}

Json measured_placement_json(const PlannedPlacement& plan, double token_us) {
  JsonArray machines, shares;
  for (const PlacedGroup::Rank& rank : plan.placement.groups.front().ranks) {
    machines.emplace_back(rank.machine + 1);
    shares.emplace_back(rank.share);
  }
  const double measured = 1e6 / token_us;
  return JsonObject{{"kind", placement_kind_name(plan.placement.kind)},
                    {"machines", std::move(machines)},
                    {"shares", std::move(shares)},
                    {"stages", plan.placement.groups.front().stages},
                    {"predicted_tok_s", plan.short_tok_s},
                    {"measured_tok_s", measured},
                    {"error", plan.short_tok_s / measured - 1}};
}

Result<Json> bench_cluster(const PlacementSubject& subject) {
  const MeasuredLinks links = TRY(measure_links(subject));
  std::vector<Machine> machines = TRY(measure_machines(subject, links.exchange_us));
  const size_t count = machines.size();
  const ClusterFacts cluster{std::move(machines), LinkTable::uniform(count, links.link)};
  std::vector<PlannedPlacement> plans =
      TRY(plan_model(subject.facts, cluster, subject.request)).fitting;
  // Copies of the model do not speed up a single stream.
  std::erase_if(plans, [](const PlannedPlacement& plan) {
    return plan.placement.kind == PlacementKind::kReplicas;
  });
  if (plans.empty()) return Error{ErrorCode::kInternal, "no placement of this cluster fits"};
  std::vector<EmulatedGroup> groups;
  for (const PlannedPlacement& plan : plans) {
    groups.push_back(group_of(subject, plan.placement.groups.front()));
  }
  const std::vector<double> token_us = TRY(measure_placement(subject, groups));
  JsonArray placements;
  double worst = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    placements.push_back(measured_placement_json(plans[i], token_us[i]));
    worst = std::max(worst, std::abs(plans[i].short_tok_s * token_us[i] / 1e6 - 1));
  }
  if (subject.has_drafts()) TRY(add_measured_drafts(subject, plans, groups, placements));
  const double best_us = *std::min_element(token_us.begin(), token_us.end());
  return Json(JsonObject{{"cluster", cluster_text(subject.cluster)},
                         {"model", subject.cluster.model},
                         {"latency_us", links.link.latency_us},
                         {"link_bytes_per_us", links.link.bytes_per_us},
                         {"exchange_us", links.exchange_us},
                         {"worst_error", worst},
                         {"choice_of_best", best_us / token_us.front()},
                         {"placements", std::move(placements)}});
}

struct Chosen {
  size_t first = 1;
  size_t last = 1;
};

Result<Chosen> parse_clusters(std::string_view text) {
  const size_t count = emulated_clusters().size();
  if (text.empty()) return Chosen{1, count};
  const size_t dots = text.find("..");
  const auto number = [](std::string_view part) {
    size_t value = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == part.data() + part.size() ? value : 0;
  };
  const size_t first = number(text.substr(0, dots));
  const size_t last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (first < 1 || last < first || last > count) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--clusters {} is invalid: write 4 or 1..{}", text, count)};
  }
  return Chosen{first, last};
}

}  // namespace

Result<Json> bench_placement(const PlacementBenchFlags& flags) {
  const Chosen chosen = TRY(parse_clusters(flags.clusters));
  const EmulatedModels models = TRY(EmulatedModels::make());
  JsonArray rows;
  double worst = 0;
  int good_choices = 0, good_predictions = 0;
  for (size_t number = chosen.first; number <= chosen.last; ++number) {
    const EmulatedCluster& cluster = emulated_clusters()[number - 1];
    const std::string model = TRY(models.name_of(cluster.model));
    OpenedModel opened = TRY(open_model(model));
    const bool has_drafts = opened.config.predicting_layers > 0;
    if (has_drafts) use_draft_layer(opened);
    const ModelFacts facts = TRY(model_facts(opened));
    PlacementSubject subject{flags, cluster, model, facts};
    if (has_drafts) {
      subject.request.limits.context = kDraftedContext;
      subject.request.draft_right = 1;
    }
    Json row = TRY(bench_cluster(subject));
    const double error = find(row, "worst_error")->to_number<double>();
    worst = std::max(worst, error);
    good_predictions += error <= kPredictionSlack ? 1 : 0;
    good_choices += find(row, "choice_of_best")->to_number<double>() >= 1 - kChoiceSlack ? 1 : 0;
    row.as_object()["number"] = number;
    rows.push_back(std::move(row));
  }
  return Json(JsonObject{{"new_tokens", flags.new_tokens},
                         {"repetitions", flags.repetitions},
                         {"worst_error", worst},
                         {"well_predicted", good_predictions},
                         {"well_chosen", good_choices},
                         {"clusters", std::move(rows)}});
}

void print_placement_bench(const Json& result) {
  const auto number = [](const Json& json, std::string_view key) {
    return find(json, key)->to_number<double>();
  };
  const auto text = [](const Json& json, std::string_view key) {
    return std::string_view(find(json, key)->get_string());
  };
  for (const Json& row : find(result, "clusters")->get_array()) {
    print_line(fmt::format("{:.0f}. {}, {}; the choice has {:.0f} % of the best",
                           number(row, "number"), text(row, "model"), text(row, "cluster"),
                           100 * number(row, "choice_of_best")));
    for (const Json& placement : find(row, "placements")->get_array()) {
      std::string ranks;
      const JsonArray& shares = find(placement, "shares")->get_array();
      const JsonArray& machines = find(placement, "machines")->get_array();
      for (size_t i = 0; i < shares.size(); ++i) {
        ranks += fmt::format("{}{}:{:.3g}", i == 0 ? "" : " ", machines[i].to_number<size_t>(),
                             shares[i].to_number<double>());
      }
      print_line(
          fmt::format("   {:<18} {:<32} predicted {:>7.2f} measured {:>7.2f} tok/s {:>+6.1f} %",
                      text(placement, "kind"), ranks, number(placement, "predicted_tok_s"),
                      number(placement, "measured_tok_s"), 100 * number(placement, "error")));
      if (!find(placement, "measured_speed_up")) continue;
      print_line(fmt::format(
          "   {:<51} predicted {:>7.2f} measured {:>7.2f} tok/s; {:.2f} x, measured {:.2f} x "
          "{:>+6.1f} %",
          "with guesses that are right", number(placement, "predicted_draft_tok_s"),
          number(placement, "measured_draft_tok_s"), number(placement, "predicted_speed_up"),
          number(placement, "measured_speed_up"), 100 * number(placement, "speed_up_error")));
    }
  }
  print_line(fmt::format(
      "{} clusters: {:.0f} choices within {:.0f} % of the best, {:.0f} clusters predicted within "
      "{:.0f} %, the worst prediction is {:.1f} % off",
      find(result, "clusters")->get_array().size(), number(result, "well_chosen"),
      100 * kChoiceSlack, number(result, "well_predicted"), 100 * kPredictionSlack,
      100 * number(result, "worst_error")));
}

}  // namespace lockstep
