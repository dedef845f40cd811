#include "planner/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/threads/work.h"
#include "model/load/shape_model.h"
#include "planner/explain.h"
#include "planner/partition.h"
#include "planner/profiles/profiles.h"
#include "support/processor_time.h"

using namespace lockstep;

namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr double kPlanningMaxMs = 1'000;  // of processor time, also under a sanitizer

ModelFacts facts_of(const std::string& shape, const std::string& format) {
  const auto model = open_model(shape_model_text({.shape = shape, .format = format}));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto facts = model_facts(model.value());
  REQUIRE_MESSAGE(facts.ok(), facts.error().message);
  return std::move(facts.value());
}

Machine profile(const std::string& name) {
  auto machine = machine_profile(name);
  REQUIRE(machine.ok());
  return machine.value();
}

ClusterFacts cluster_of_machines(const std::vector<Machine>& machines, const std::string& link) {
  const auto figures = link_profile(link);
  REQUIRE(figures.ok());
  ClusterFacts cluster{machines, LinkTable::uniform(machines.size(), figures.value())};
  for (size_t i = 0; i < machines.size(); ++i) {
    cluster.machines[i].name += "-" + std::to_string(i + 1);
  }
  return cluster;
}

ModelPlan plan_of(const ModelFacts& facts, const ClusterFacts& cluster, LoadLimits limits) {
  auto plan = plan_model(facts, cluster, {.limits = limits});
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  return std::move(plan.value());
}

const PlannedPlacement& find_kind(const std::vector<PlannedPlacement>& plans, PlacementKind kind,
                                  size_t machines) {
  for (const PlannedPlacement& plan : plans) {
    if (plan.placement.kind == kind && plan.placement.machine_count() == machines) return plan;
  }
  FAIL("no such placement");
  return plans.front();
}

bool says(const ModelPlan& plan, const char* text) {
  return plan.explanation.find(text) != std::string::npos;
}

void check_fits(const ModelPlan& plan, const ClusterFacts& cluster) {
  for (const PlannedPlacement& fitting : plan.fitting) {
    for (const PlacedGroup& group : fitting.placement.groups) {
      for (const PlacedGroup::Rank& rank : group.ranks) {
        CHECK(rank.memory.total() <= cluster.machines[rank.machine].memory_bytes);
      }
    }
  }
}

}  // namespace

TEST_CASE("a plan says whose figures it stands on") {
  const ModelFacts facts = facts_of("llama-3.2-1b", "bf16");
  Machine machine = machine_profile("epyc-9005").value();
  const auto plan_on = [&](const Machine& one, size_t count) {
    return plan_of(facts, cluster_of_machines(std::vector(count, one), "10gbe"), {.context = 512});
  };
  CHECK(!says(plan_on(machine, 1), "lockstep"));
  CHECK(says(plan_on(machine_profile("dgx-spark").value(), 1),
             "The figures of dgx-spark-1 are those of published software for GPUs, an estimate of "
             "what lockstep reaches there."));
  machine.measured_on = "Radeon (radv)";
  const ModelPlan measured = plan_on(machine, 1);
  CHECK(says(measured, "Measured with lockstep itself: epyc-9005-1 on Radeon (radv)."));
  CHECK(!says(measured, "published"));
}

TEST_CASE("one machine by hand: weights, keys and values, the overhead of operations") {
  // Llama 3.2 1B: 1235.8 million parameters in BF16, 16 layers, 8 key/value heads of 64.
  const ModelFacts facts = facts_of("llama-3.2-1b", "bf16");
  const Machine machine{.name = "box",
                        .memory_bytes = 16 * kGib,
                        .read_bytes_per_us = 20e3,
                        .kernel_us = 0.5,
                        .operations_per_us = 1e6,
                        .idle_w = 10,
                        .load_w = 50,
                        .price_usd = 1000};
  const ClusterFacts cluster{{machine}, LinkTable(1, {std::nullopt})};
  const ModelPlan plan = plan_of(facts, cluster, {.context = 4096, .kv = KvKind::kF32});
  REQUIRE(plan.fitting.size() == 1);
  const PlannedPlacement& one = plan.fitting.front();
  const double weights = 1235.8e6 * 2 / 20e3, kernels = 16 * 17 * 0.5;
  const double state = 16.0 * 4096 * 2 * 8 * 64 * 4 / 20e3;
  CHECK(one.token.weights == doctest::Approx(weights).epsilon(0.001));
  CHECK(one.token.kernels == doctest::Approx(kernels));
  CHECK(one.token.state == doctest::Approx(state));
  CHECK(one.token.exchange + one.token.hops + one.token.compute == 0);
  CHECK(one.decode_tok_s == doctest::Approx(1e6 / (weights + kernels + state)).epsilon(0.001));
  CHECK(one.short_tok_s == doctest::Approx(1e6 / (weights + kernels)).epsilon(0.001));
  CHECK(one.joule_per_token == doctest::Approx(50 / one.decode_tok_s));
  CHECK(one.price_usd == 1000);
  // 512 tokens are one chunk, limited by arithmetic: two operations per weight and token.
  const double attention = 4.0 * 512 * 256 * 32 * 64 * 16;
  const double head = 128256.0 * 2048, layers = 1235.8e6 - head;  // logits for one token
  const double prompt = (2 * layers * 512 + 2 * head + attention) / 1e6 + kernels;
  CHECK(one.first_token_s == doctest::Approx(prompt / 1e6).epsilon(0.01));
  const RankMemory& memory = one.placement.groups.front().ranks.front().memory;
  CHECK(memory.weight_bytes == doctest::Approx(1235.8e6 * 2).epsilon(0.001));
  CHECK(memory.state_bytes == uint64_t{16} * 4096 * 2 * 8 * 64 * 4);
  // 16 bits take half, 8 bits with a scale of 16 for 32 of them a little more than a quarter.
  for (const auto& [kv, part] : {std::pair(KvKind::kF16, 0.5), std::pair(KvKind::kBF16, 0.5),
                                 std::pair(KvKind::kQ8, 8.5 / 32)}) {
    const ModelPlan rounded = plan_of(facts, cluster, {.context = 4096, .kv = kv});
    REQUIRE(rounded.fitting.size() == 1);
    const PlannedPlacement& found = rounded.fitting.front();
    CHECK(found.token.state == doctest::Approx(state * part));
    CHECK(static_cast<double>(found.placement.groups.front().ranks.front().memory.state_bytes) ==
          static_cast<double>(memory.state_bytes) * part);
  }
}

TEST_CASE("fast links: a dense model is cut over all machines, close to the published speed") {
  const std::vector<Machine> machines(4, profile("mac-studio-m3-ultra"));
  const ClusterFacts cluster = cluster_of_machines(machines, "tb5-rdma");
  const ModelPlan plan = plan_of(facts_of("llama-3.3-70b", "bf16"), cluster, {.context = 4096});
  const PlannedPlacement& choice = plan.fitting.front();
  CHECK(choice.placement.kind == PlacementKind::kTensor);
  CHECK(choice.placement.machine_count() == 4);
  CHECK(choice.short_tok_s == doctest::Approx(15.5).epsilon(0.06));
  CHECK(find_kind(plan.fitting, PlacementKind::kOne, 1).short_tok_s ==
        doctest::Approx(5.0).epsilon(0.06));
  CHECK(find_kind(plan.fitting, PlacementKind::kTensor, 2).short_tok_s ==
        doctest::Approx(9.0).epsilon(0.06));
  // A pipeline does not divide the work of one token.
  CHECK(find_kind(plan.fitting, PlacementKind::kPipeline, 4).short_tok_s ==
        doctest::Approx(5.0).epsilon(0.06));
  // 600 W for four machines at 15.5 tok/s.
  CHECK(choice.joule_per_token == doctest::Approx(600 / choice.decode_tok_s));
  CHECK(choice.price_usd == 4 * 11699);
  CHECK(choice.first_token_s < 0.5 * find_kind(plan.fitting, PlacementKind::kOne, 1).first_token_s);
  CHECK(says(plan, "Tensor over 4 machines is the choice"));
  CHECK(says(plan, "One machine alone would reach"));
  check_fits(plan, cluster);
}

TEST_CASE("slow links: a single machine is better, and the plan says so") {
  const std::vector<Machine> machines(4, profile("mac-studio-m3-ultra"));
  const ClusterFacts cluster = cluster_of_machines(machines, "tb-tcp");
  const ModelPlan plan = plan_of(facts_of("qwen3-235b-a22b", "mlx4"), cluster, {.context = 4096});
  CHECK(plan.fitting.front().placement.kind == PlacementKind::kOne);
  CHECK(says(plan, "One machine alone is better"));
  // Exchanges alone take at least 191 times 300 us.
  CHECK(find_kind(plan.fitting, PlacementKind::kTensor, 4).decode_tok_s < 17);
}

TEST_CASE("slow links and a model that one machine cannot hold: a pipeline") {
  const std::vector<Machine> machines(2, profile("ai-max-395"));
  const ClusterFacts cluster = cluster_of_machines(machines, "1gbe");
  const ModelPlan plan = plan_of(facts_of("qwen3-235b-a22b", "mlx5"), cluster, {.context = 8192});
  CHECK(plan.fitting.front().placement.kind == PlacementKind::kPipeline);
  CHECK(says(plan, "One machine alone cannot hold the model: ai-max-395-1 would need"));
  CHECK(find_kind(plan.refused, PlacementKind::kOne, 1).lacking_bytes > 20 * kGib);
  check_fits(plan, cluster);
}

TEST_CASE("a model that does not fit is refused with exact figures") {
  const std::vector<Machine> machines(2, profile("dgx-spark"));
  const ClusterFacts cluster = cluster_of_machines(machines, "100gbe-roce");
  const ModelPlan plan = plan_of(facts_of("deepseek-v3.1", "mlx8"), cluster, {.context = 4096});
  CHECK(plan.fitting.empty());
  REQUIRE(!plan.refused.empty());
  CHECK(says(plan, "The model does not fit"));
  const PlannedPlacement& tensor = find_kind(plan.refused, PlacementKind::kTensor, 2);
  uint64_t lacking = 0;
  for (const PlacedGroup::Rank& rank : tensor.placement.groups.front().ranks) {
    lacking += rank.memory.total() - cluster.machines[rank.machine].memory_bytes;
  }
  CHECK(tensor.lacking_bytes == lacking);
  CHECK(lack_text(cluster, tensor).find("and has 113.00 GiB") != std::string::npos);
}

TEST_CASE("unequal machines: shares by speed, and by memory if that is short") {
  Machine fast = profile("mac-studio-m3-ultra"), slow = fast;
  slow.read_bytes_per_us /= 3;
  const ModelFacts facts = facts_of("qwen3-32b", "mlx8");
  const ModelPlan by_speed =
      plan_of(facts, cluster_of_machines({slow, fast}, "tb5-rdma"), {.context = 4096});
  const auto& ranks =
      find_kind(by_speed.fitting, PlacementKind::kTensor, 2).placement.groups.front().ranks;
  CHECK(ranks[0].machine == 1);  // the faster one is first
  CHECK(ranks[0].share == doctest::Approx(3 * ranks[1].share));
  CHECK(ranks[0].subtrees <= 2);

  // 658 GB over 496 + 496 + 244 + 244 GiB: the small ones cannot have a quarter each.
  const Machine large = profile("mac-studio-m3-ultra"), small = profile("mac-studio-m3-ultra-256");
  const ClusterFacts mixed = cluster_of_machines({large, small, large, small}, "tb5-rdma");
  const ModelPlan by_memory = plan_of(facts_of("kimi-k2", "mlx8"), mixed, {.context = 8192});
  const PlannedPlacement& tensor = find_kind(by_memory.fitting, PlacementKind::kTensor, 4);
  for (const PlacedGroup::Rank& rank : tensor.placement.groups.front().ranks) {
    const bool is_large = mixed.machines[rank.machine].memory_bytes > 300 * kGib;
    CHECK((rank.memory.weight_bytes > 250 * kGib) == is_large);
  }
  check_fits(by_memory, mixed);
}

TEST_CASE("many streams over slow links: replicas, and one stream alone needs none") {
  const std::vector<Machine> machines(4, profile("ai-max-395"));
  const ClusterFacts cluster = cluster_of_machines(machines, "1gbe");
  const ModelFacts facts = facts_of("qwen3-8b", "mlx4");
  const ModelPlan many = plan_of(facts, cluster, {.context = 4096, .streams = 16});
  const PlannedPlacement& choice = many.fitting.front();
  CHECK(choice.placement.kind == PlacementKind::kReplicas);
  CHECK(choice.placement.groups.size() == 4);
  // Each replica has a quarter of the streams, and memory for those.
  const auto& alone = find_kind(many.fitting, PlacementKind::kOne, 1).placement.groups.front();
  CHECK(4 * choice.placement.groups.front().ranks.front().memory.state_bytes ==
        alone.ranks.front().memory.state_bytes);
  CHECK(plan_of(facts, cluster, {.context = 4096}).fitting.front().placement.kind ==
        PlacementKind::kOne);
}

TEST_CASE("replicas of unequal machines: large ones alone, small ones together") {
  std::vector<Machine> machines;
  for (const int gib : {10, 22, 10, 22, 10, 10}) {
    Machine machine = profile("ai-max-395");
    machine.memory_bytes = static_cast<uint64_t>(gib) * kGib;
    machines.push_back(machine);
  }
  const ClusterFacts cluster = cluster_of_machines(machines, "10gbe");
  const ModelFacts facts = facts_of("qwen3-8b", "bf16");  // 16.4 GB of weights
  const ModelPlan plan = plan_of(facts, cluster, {.context = 2048, .streams = 4});
  check_fits(plan, cluster);
  std::map<size_t, double> total_tok_s;  // by groups
  for (const PlannedPlacement& fitting : plan.fitting) {
    if (fitting.placement.kind != PlacementKind::kReplicas) continue;
    double& best = total_tok_s[fitting.placement.groups.size()];
    best = std::max(best, fitting.total_tok_s);
    std::set<size_t> used;
    for (const PlacedGroup& group : fitting.placement.groups) {
      for (const PlacedGroup::Rank& rank : group.ranks) CHECK(used.insert(rank.machine).second);
    }
    MESSAGE(placement_text(fitting.placement), ": ", fitting.total_tok_s, " tok/s");
  }
  CHECK(total_tok_s.contains(2));
  CHECK(total_tok_s.contains(3));
  CHECK(total_tok_s.contains(4));
  CHECK(!total_tok_s.contains(5));
  const auto four =
      std::find_if(plan.fitting.begin(), plan.fitting.end(),
                   [](const PlannedPlacement& one) { return one.placement.groups.size() == 4; });
  CHECK(placement_text(four->placement) == "4 replicas of 1 to 2 machines");
}

TEST_CASE("machines are divided so that each is in one group, by memory and by proximity") {
  std::vector<Machine> machines;
  for (const int gib : {1, 8, 2, 8, 4, 1, 0}) {
    machines.push_back({.memory_bytes = static_cast<uint64_t>(gib) * kGib});
  }
  ClusterFacts cluster{machines, LinkTable::uniform(machines.size(), {.bytes_per_us = 1})};
  for (size_t count = 1; count <= machines.size(); ++count) {
    for (const MachineGroups& groups : partitions(cluster, count)) {
      REQUIRE(groups.size() == count);
      std::set<size_t> used;
      for (const MachineOrder& group : groups) {
        CHECK(!group.empty());
        for (const size_t machine : group) CHECK(used.insert(machine).second);
      }
      CHECK(used.size() == machines.size());
    }
  }
  CHECK(partitions(cluster, 3).front().back() == MachineOrder{4, 2, 0, 5});
  // Two clusters with fast links inside.
  std::vector<std::optional<LinkFigures>> direct;
  for (size_t a = 0; a < machines.size(); ++a) {
    for (size_t b = 0; b < machines.size(); ++b) {
      direct.push_back(LinkFigures{.latency_us = a % 2 == b % 2 ? 5.0 : 500.0, .bytes_per_us = 1});
    }
  }
  for (Machine& machine : cluster.machines) machine.memory_bytes = kGib;
  cluster.machines[6].memory_bytes = 0;
  cluster.links = LinkTable(machines.size(), direct);
  const auto found = partitions(cluster, 2);
  REQUIRE(found.size() == 2);
  for (const MachineOrder& group : found[1]) {
    for (const size_t machine : group) CHECK(machine % 2 == group.front() % 2);
  }
}

TEST_CASE("stages of several machines where near links are fast and far ones slow") {
  const Machine machine = profile("ai-max-395");
  ClusterFacts cluster = cluster_of_machines(std::vector<Machine>(4, machine), "1gbe");
  LinkFigures far = link_profile("1gbe").value();
  far.latency_us = 2000;
  std::vector<std::optional<LinkFigures>> direct(16, far);
  for (const auto& [a, b] : {std::pair<size_t, size_t>{0, 2}, {1, 3}}) {
    direct[a * 4 + b] = direct[b * 4 + a] = link_profile("100gbe-roce").value();
  }
  cluster.links = LinkTable(4, direct);
  const ModelPlan plan = plan_of(facts_of("llama-3.3-70b", "bf16"), cluster, {.context = 8192});
  const PlannedPlacement& both = find_kind(plan.fitting, PlacementKind::kTensorPipeline, 4);
  CHECK(plan.fitting.front().decode_tok_s <= both.decode_tok_s * kWorthAnotherMachine);
  const auto& ranks = both.placement.groups.front().ranks;
  CHECK(ranks[0].machine % 2 == ranks[1].machine % 2);  // 0 with 2, 1 with 3
  CHECK(both.token.hops > 0);
  CHECK(both.token.exchange > 0);
}

TEST_CASE("a longer context takes more memory and more time, and can exceed the model's maximum") {
  const ClusterFacts cluster = cluster_of_machines({profile("dgx-spark")}, "1gbe");
  const ModelFacts facts = facts_of("llama-3.3-70b", "mlx4");
  const ModelPlan brief = plan_of(facts, cluster, {.context = 1024});
  const ModelPlan full = plan_of(facts, cluster, {.context = 65536});
  const PlannedPlacement &a = brief.fitting.front(), &b = full.fitting.front();
  CHECK(b.short_tok_s == doctest::Approx(a.short_tok_s));
  CHECK(b.decode_tok_s < 0.75 * a.decode_tok_s);
  CHECK(plan_of(facts, cluster, {.context = 131072, .streams = 8}).fitting.empty());
  CHECK(!plan_model(facts, cluster, {.limits = {.context = 131073}}).ok());
}

TEST_CASE("measured figures change the plan: overhead, exchanges and links") {
  const ModelFacts facts = facts_of("qwen3-30b-a3b", "mlx4");
  std::vector<Machine> machines(2, profile("dgx-spark"));
  const ModelPlan before =
      plan_of(facts, cluster_of_machines(machines, "100gbe-roce"), {.context = 1024});
  for (Machine& machine : machines) {
    machine.kernel_us = 0;
    machine.exchange_us = 1;
  }
  const ModelPlan after =
      plan_of(facts, cluster_of_machines(machines, "100gbe-roce"), {.context = 1024});
  const StepTime &slow = find_kind(before.fitting, PlacementKind::kTensor, 2).token,
                 &fast = find_kind(after.fitting, PlacementKind::kTensor, 2).token;
  CHECK(slow.kernels == doctest::Approx(48 * 27 * 4.0));
  CHECK(fast.kernels == 0);
  CHECK(slow.exchange - fast.exchange == doctest::Approx((2 * 48 + 3) * 19.0));
  CHECK(slow.weights == fast.weights);
}

namespace {

// All machines and links are different.
ClusterFacts unequal_cluster(int size) {
  std::vector<Machine> machines;
  for (int i = 0; i < size; ++i) {
    Machine machine = profile(i % 2 == 0 ? "mac-studio-m3-ultra" : "dgx-spark");
    machine.read_bytes_per_us *= 1 + 0.01 * i;
    machine.memory_bytes -= static_cast<uint64_t>(i) * kGib;
    machines.push_back(machine);
  }
  return cluster_of_machines(machines, "100gbe-roce");
}

}  // namespace

// About 15 to 50 ms of one processor, as the message shows.
TEST_CASE("a draft layer makes more tokens in a step the more of its guesses are right") {
  const auto facts_with = [](const char* shape) {
    const auto model = open_with_draft_layer(shape_model_text({.shape = shape, .format = "int4"}));
    REQUIRE(model.ok());
    REQUIRE(model.value().config.has_draft_layer());
    return model_facts(model.value()).value();
  };
  const ModelFacts facts = facts_with("glm-4.5-air");
  const auto drafted = [&](const char* link, double right) {
    const ClusterFacts cluster = cluster_of_machines({2, profile("mac-studio-m3-ultra")}, link);
    auto plan = plan_model(facts, cluster, {.limits = {.context = 4096}, .draft_right = right});
    REQUIRE(plan.ok());
    return plan.value();
  };
  double before = 0;
  for (const double right : {0.0, 0.3, 0.6, 0.9, 1.0}) {
    CAPTURE(right);
    const ModelPlan plan = drafted("tb5-rdma", right);
    const PlannedPlacement& choice = plan.fitting.front();
    const double gain = choice.draft_tok_s / choice.decode_tok_s;
    CHECK(gain > before);
    before = gain;
    if (right == 0) CHECK(gain > 0.9);  // each token takes its entry, and no guess is made
    if (right == 0) CHECK(gain < 1);
    if (right == 1) CHECK(gain > 2);
    CHECK(plan.explanation.find("guesses are right") != std::string::npos);
    for (const PlannedPlacement& other : plan.fitting) {
      CHECK(other.draft_tok_s > 0);
    }
  }
  // A step of several tokens waits for as many exchanges as one of one token.
  const PlannedPlacement near =
      find_kind(drafted("tb5-rdma", 0.8).fitting, PlacementKind::kTensor, 2);
  const PlannedPlacement far = find_kind(drafted("tb-tcp", 0.8).fitting, PlacementKind::kTensor, 2);
  CHECK(far.draft_tok_s / far.decode_tok_s > near.draft_tok_s / near.decode_tok_s);
  const ModelPlan without = plan_of(
      facts_of("glm-4.5-air", "int4"),
      cluster_of_machines({2, profile("mac-studio-m3-ultra")}, "tb5-rdma"), {.context = 4096});
  CHECK(find_kind(without.fitting, PlacementKind::kTensor, 2).decode_tok_s == near.decode_tok_s);
  CHECK(without.fitting.front().draft_tok_s == 0);
  CHECK(without.explanation.find("guesses") == std::string::npos);
}

TEST_CASE("a draft model takes memory in the first stage, and makes more tokens in a step") {
  const ModelFacts facts = facts_of("qwen3-32b", "mlx4"), draft = facts_of("qwen3-0.6b", "mlx4");
  const ClusterFacts cluster = cluster_of_machines({2, profile("mac-studio-m3-ultra")}, "tb5-rdma");
  const auto planned = [&](const ModelFacts* by, double right) {
    auto plan = plan_model(facts, cluster,
                           {.limits = {.context = 4096}, .draft_right = right, .draft_model = by});
    REQUIRE(plan.ok());
    return std::move(plan.value());
  };
  const ModelPlan alone = planned(nullptr, 0.6), none = planned(&draft, 0),
                  some = planned(&draft, 0.6), all = planned(&draft, 1);
  CHECK(alone.fitting.front().draft_tok_s == 0);
  CHECK(some.explanation.find("If 60 % of the draft model's guesses are right") !=
        std::string::npos);
  for (const PlacementKind kind : {PlacementKind::kTensor, PlacementKind::kPipeline}) {
    CAPTURE(placement_kind_name(kind));
    const PlannedPlacement usual = find_kind(alone.fitting, kind, 2);
    // Without right guesses it makes none, which costs nothing.
    CHECK(find_kind(none.fitting, kind, 2).draft_tok_s == usual.decode_tok_s);
    const double gain = find_kind(some.fitting, kind, 2).draft_tok_s / usual.decode_tok_s;
    CHECK(gain > 1.2);
    CHECK(find_kind(all.fitting, kind, 2).draft_tok_s / usual.decode_tok_s > gain);
    CHECK(find_kind(some.fitting, kind, 2).decode_tok_s == usual.decode_tok_s);
    const auto& with = find_kind(some.fitting, kind, 2).placement.groups[0].ranks;
    const auto& without = usual.placement.groups[0].ranks;
    const auto added = [&](size_t rank) {
      return with[rank].memory.packed_bytes - without[rank].memory.packed_bytes;
    };
    const bool is_pipeline = kind == PlacementKind::kPipeline;
    CHECK((added(1) == 0) == is_pipeline);
    // Each rank of a stage has the whole embedding of its own share of rows.
    CHECK(added(0) + added(1) > 300'000'000);
    CHECK(added(0) + added(1) < 400'000'000);
  }
}

TEST_CASE("twice the machines, up to sixteen, take a few times the work to plan") {
  constexpr double kGrowthMax = 16;  // as the fourth power; all sets of machines would be 2^8
  const ClusterFacts eight = unequal_cluster(8), sixteen = unequal_cluster(16);
  for (const char* shape : {"llama-3.3-70b", "deepseek-v3.1"}) {
    CAPTURE(shape);
    const ModelFacts facts = facts_of(shape, "mlx4");
    const auto plan_all = [&](const ClusterFacts& cluster, size_t fitting_min) {
      return least_processor_ms(5, [&] {
        const ModelPlan plan = plan_of(facts, cluster, {.context = 8192, .streams = 4});
        CHECK(plan.fitting.size() > fitting_min);
        check_fits(plan, cluster);
      });
    };
    const double few_ms = plan_all(eight, 10), many_ms = plan_all(sixteen, 20);
    MESSAGE(std::string(shape), ": ", many_ms, " ms, for eight machines ", few_ms);
    CHECK(many_ms < kGrowthMax * few_ms);
    CHECK(many_ms < kPlanningMaxMs);
  }
}

TEST_CASE("planning ends when its request is cancelled, and when its processor time is spent") {
  const ModelFacts facts = facts_of("llama-3.2-1b", "bf16");
  const ClusterFacts cluster =
      cluster_of_machines(std::vector<Machine>(16, profile("mac-studio-m3-ultra")), "10gbe");
  Work cancelled(std::chrono::milliseconds(60'000));
  cancelled.cancel();
  {
    const Work::Scope scope(cancelled);
    const auto plan = plan_model(facts, cluster, {.limits = {.context = 1024, .streams = 1}});
    REQUIRE(!plan.ok());
    CHECK(plan.error().code == ErrorCode::kCancelled);
  }
  Work spent(std::chrono::milliseconds(0));
  const Work::Scope scope(spent);
  const auto plan = plan_model(facts, cluster, {.limits = {.context = 1024, .streams = 1}});
  REQUIRE(!plan.ok());
  CHECK(plan.error().code == ErrorCode::kExhausted);
}
