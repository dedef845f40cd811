#include "node/cluster/cluster_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <numeric>
#include <string>

#include "cluster/cluster_fixture.h"
#include "model/load/shape_model.h"
#include "node/cluster/planned_model.h"
#include "node/cluster/what_if.h"
#include "planner/facts/measured_machine.h"
#include "support/numbered_node.h"
#include "support/processor_time.h"

using namespace lockstep;

namespace {

constexpr int64_t kGib = int64_t{1} << 30;

// Nodes 1, 2, ... with the given free memory, on fast links.
std::vector<NodeOffer> offers_of(const std::vector<int64_t>& free_bytes) {
  std::vector<NodeOffer> offers;
  for (const int64_t bytes : free_bytes) {
    NodeOffer offer{.node = node(static_cast<int>(offers.size()) + 1),
                    .name = fmt::format("machine-{}", offers.size() + 1),
                    .free_bytes = bytes,
                    .speed = 50'000'000'000,
                    .operations_s = 3'000'000'000'000,
                    .link_bytes_s = 1'250'000'000};
    for (const NodeOffer& other : offers) offer.round_trips.push_back({other.node, 60});
    offers.push_back(offer);
  }
  return offers;
}

DesiredEntry entry_of(ModelPromises promises = {}) {
  DesiredEntry entry;
  entry.name = "llama";
  entry.path = shape_model_text({.shape = "llama-3.2-1b", .format = "bf16"});
  entry.wanted = true;
  entry.promises = std::move(promises);
  return entry;
}

PlannedModel read_model(const std::string& draft_model = "") {
  auto made = read_planned_model({.model = entry_of().path, .draft_model = draft_model},
                                 PartialFiles::kRefused);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made.value());
}

const PlannedModel& llama() {
  static const PlannedModel model = read_model();
  return model;
}

Result<std::vector<RankPlan>> try_plan(const ModelPromises& promises,
                                       const std::vector<NodeOffer>& offers) {
  return plan_groups(entry_of(promises), llama(), 1, offers);
}

// Checks that each plan fits into its nodes' free memory, and that no two share a node.
std::vector<RankPlan> plans_of(const ModelPromises& promises, size_t groups,
                               const std::vector<NodeOffer>& offers) {
  auto plans = plan_groups(entry_of(promises), llama(), groups, offers);
  REQUIRE_MESSAGE(plans.ok(), (plans.ok() ? "" : plans.error().message));
  CHECK(plans.value().size() <= groups);
  for (const NodeOffer& offer : offers) {
    int holders = 0;
    for (const RankPlan& plan : plans.value()) {
      const int64_t bytes = bytes_on(plan.ranks, offer.node);
      CHECK(bytes <= offer.free_bytes);
      holders += bytes > 0 ? 1 : 0;
    }
    CHECK(holders <= 1);
  }
  for (const RankPlan& plan : plans.value()) {
    for (const RankPart& rank : plan.ranks) CHECK((rank.bytes > 0 && rank.share > 0));
  }
  return std::move(plans.value());
}

RankPlan plan_of(const ModelPromises& promises, const std::vector<NodeOffer>& offers) {
  auto plans = plans_of(promises, 1, offers);
  REQUIRE(plans.size() == 1);
  return plans.front();
}

int64_t all_bytes(const RankPlan& plan) {
  return std::accumulate(plan.ranks.begin(), plan.ranks.end(), int64_t{0},
                         [](int64_t sum, const RankPart& rank) { return sum + rank.bytes; });
}

}  // namespace

TEST_CASE("cluster plan: a small model is on one node, with the memory that it takes") {
  const RankPlan plan = plan_of({.context = 4096, .streams = 1}, offers_of({8 * kGib}));
  REQUIRE(plan.ranks.size() == 1);
  CHECK(plan.stages == 1);
  CHECK(plan.ranks[0].node == node(1));
  CHECK(plan.ranks[0].bytes > 2 * kGib);  // 1.24e9 weights of two bytes
  CHECK(plan.ranks[0].bytes < 4 * kGib);
  // More context and more streams need more.
  const RankPlan long_one = plan_of({.context = 32768, .streams = 1}, offers_of({16 * kGib}));
  const RankPlan many = plan_of({.context = 4096, .streams = 8}, offers_of({16 * kGib}));
  CHECK(long_one.ranks[0].bytes > plan.ranks[0].bytes);
  CHECK(many.ranks[0].bytes == long_one.ranks[0].bytes);
  CHECK(plan_of({}, offers_of({16 * kGib})).ranks[0].bytes > many.ranks[0].bytes);  // 8 of 8192
}

TEST_CASE("cluster plan: a model that fits on no single node is spread by available memory") {
  const ModelPromises promises{.context = 4096, .streams = 1};
  const int64_t whole = plan_of(promises, offers_of({8 * kGib})).ranks[0].bytes;
  const auto offers = offers_of({whole * 3 / 4, whole / 2});
  const RankPlan plan = plan_of(promises, offers);
  REQUIRE(plan.ranks.size() == 2);
  CHECK(all_bytes(plan) >= whole);
  CHECK(bytes_on(plan.ranks, node(1)) > bytes_on(plan.ranks, node(2)));
  for (const RankPart& rank : plan.ranks) {
    const RankPart& other = plan.ranks[rank == plan.ranks[0] ? 1 : 0];
    CHECK((rank.share > other.share) == (rank.bytes > other.bytes));
  }
}

TEST_CASE("cluster plan: as many ranks as were asked for, even on fewer nodes") {
  const auto three = offers_of({8 * kGib, 8 * kGib, 8 * kGib});
  for (const int64_t parallel : {1, 2, 3}) {
    const RankPlan plan = plan_of({.context = 4096, .streams = 1, .parallel = parallel}, three);
    CHECK(static_cast<int64_t>(plan.ranks.size()) == parallel);
  }
  const RankPlan two =
      plan_of({.context = 4096, .streams = 1, .parallel = 2}, offers_of({8 * kGib}));
  REQUIRE(two.ranks.size() == 2);
  CHECK(two.ranks[0].node == two.ranks[1].node);
  CHECK(two.ranks[0].share == two.ranks[1].share);
}

TEST_CASE("cluster plan: layers are cut or handed out whole, as was asked for") {
  const auto three = offers_of({8 * kGib, 8 * kGib, 8 * kGib});
  for (const int64_t ranks : {2, 3}) {
    ModelPromises promises{.context = 4096, .streams = 1, .parallel = ranks};
    promises.parallelism = Parallelism::kTensor;
    CHECK(plan_of(promises, three).stages == 1);
    promises.parallelism = Parallelism::kPipeline;
    CHECK(plan_of(promises, three).stages == ranks);
  }
  const ModelPromises pipeline{
      .context = 4096, .streams = 1, .parallelism = Parallelism::kPipeline};
  const RankPlan free = plan_of(pipeline, three);
  CHECK(free.stages == static_cast<int64_t>(free.ranks.size()));
  const ModelPromises many{
      .context = 4096, .streams = 1, .parallel = 17, .parallelism = Parallelism::kPipeline};
  const auto refused = try_plan(many, three);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("in pipeline") != std::string::npos);
}

TEST_CASE("cluster plan: a refusal says how much is missing on which node") {
  const ModelPromises promises{.context = 4096, .streams = 1};
  const auto refused = try_plan(promises, offers_of({kGib, kGib / 2}));
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  MESSAGE(refused.error().message);
  CHECK(refused.error().message.find("model 'llama' needs ") == 0);
  CHECK(refused.error().message.find("GiB more than there is") != std::string::npos);
  CHECK(refused.error().message.find("node machine-1 ") != std::string::npos);
  CHECK(!try_plan(promises, offers_of({0, 0})).ok());
  CHECK(!try_plan(promises, {}).ok());
  for (const ModelPromises& wrong :
       {ModelPromises{.context = 1 << 30}, ModelPromises{.streams = int64_t{1} << 40},
        ModelPromises{.parallel = 65}}) {
    CHECK(try_plan(wrong, offers_of({8 * kGib})).error().code == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("cluster plan: groups are planned together: none takes memory that another needs") {
  const ModelPromises promises{.context = 4096, .streams = 1};
  const int64_t whole = plan_of(promises, offers_of({8 * kGib})).ranks[0].bytes;
  // Equal nodes: one group on each, and no more groups than nodes.
  const auto three = offers_of({8 * kGib, 8 * kGib, 8 * kGib});
  for (const size_t groups : {1, 2, 3}) CHECK(plans_of(promises, groups, three).size() == groups);
  CHECK(plans_of(promises, 16, three).size() == 3);
  // Unequal: the large nodes alone, the small ones in pairs.
  const int64_t small = whole * 5 / 8, large = whole * 9 / 8;
  const auto mixed = offers_of({small, large, small, large, small, small});
  const auto plans = plans_of(promises, 4, mixed);
  REQUIRE(plans.size() == 4);
  size_t pairs = 0;
  for (const RankPlan& plan : plans) {
    pairs += plan.ranks.size() == 2 ? 1 : 0;
    CHECK(all_bytes(plan) >= whole);
  }
  CHECK(pairs == 2);
  // A fourth group does not fit: the others take no more nodes than they need.
  const auto four = offers_of({small, small, small, large, large});
  const auto fewer = plans_of(promises, 4, four);
  CHECK(fewer.size() == 3);
  size_t nodes = 0;
  for (const RankPlan& plan : fewer) nodes += plan.ranks.size();
  CHECK(nodes == 4);
  // Not even one group fits: the refusal has the numbers.
  const auto refused = plan_groups(entry_of(promises), llama(), 2, offers_of({kGib, kGib / 2}));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("GiB more than there is") != std::string::npos);
  CHECK(!plan_groups(entry_of(promises), llama(), 2, {}).ok());
}

TEST_CASE("cluster plan: nearby nodes form a group, and several ranks of one stay on one node") {
  const ModelPromises promises{.context = 4096, .streams = 1};
  const int64_t whole = plan_of(promises, offers_of({8 * kGib})).ranks[0].bytes;
  auto offers = offers_of({whole * 5 / 8, whole * 5 / 8, whole * 5 / 8, whole * 5 / 8});
  // 1 and 3 are close to each other, and so are 2 and 4.
  for (size_t i = 0; i < offers.size(); ++i) {
    offers[i].round_trips.clear();
    for (size_t k = 0; k < offers.size(); ++k) {
      if (i != k) offers[i].round_trips.push_back({offers[k].node, i % 2 == k % 2 ? 40 : 4'000});
    }
  }
  const auto plans = plans_of(promises, 2, offers);
  REQUIRE(plans.size() == 2);
  for (const RankPlan& plan : plans) {
    REQUIRE(plan.ranks.size() == 2);
    const bool is_odd = bytes_on(plan.ranks, node(1)) > 0 || bytes_on(plan.ranks, node(3)) > 0;
    CHECK((bytes_on(plan.ranks, node(1)) > 0) == is_odd);
    CHECK((bytes_on(plan.ranks, node(3)) > 0) == is_odd);
  }
  const ModelPromises ranks{.context = 4096, .streams = 1, .parallel = 2};
  const auto twice = plans_of(ranks, 2, offers_of({8 * kGib, 8 * kGib}));
  REQUIRE(twice.size() == 2);
  for (const RankPlan& plan : twice) {
    REQUIRE(plan.ranks.size() == 2);
    CHECK(plan.ranks[0].node == plan.ranks[1].node);
  }
}

TEST_CASE("cluster plan: the promised streams are those of all groups") {
  const auto two = offers_of({16 * kGib, 16 * kGib});
  const ModelPromises eight{.context = 4096, .streams = 8};
  const ModelPromises sixteen{.context = 4096, .streams = 16, .replicas = 2};
  CHECK(plans_of(sixteen, 2, two)[0].ranks[0].bytes ==
        plan_of(eight, offers_of({16 * kGib})).ranks[0].bytes);
  CHECK(planned_limits(llama().facts.config, sixteen).value().streams == 8);
  CHECK(planned_limits(llama().facts.config, {.streams = 9, .replicas = 2}).value().streams == 5);
  CHECK(planned_limits(llama().facts.config, {.replicas = 4}).value().streams == kSequencesDefault);
}

TEST_CASE("cluster plan: a draft model counts where its ranks are, and must hold the context") {
  const ModelPromises promises{.context = 4096, .streams = 1};
  const auto offers = offers_of({16 * kGib});
  const PlannedModel with_draft = read_model(entry_of().path);  // guesses for itself
  const int64_t alone = plan_of(promises, offers).ranks[0].bytes;
  const auto plans = plan_groups(entry_of(promises), with_draft, 1, offers);
  REQUIRE(plans.ok());
  const int64_t both = plans.value()[0].ranks[0].bytes;
  CHECK(both > 18 * alone / 10);  // its process and its buffers are there once
  CHECK(both <= 2 * alone);
  CHECK(!plan_groups(entry_of(promises), with_draft, 1, offers_of({alone})).ok());
  PlannedModel short_draft = read_model(entry_of().path);
  short_draft.draft_model->config.positions_max = 4095;
  const auto refused = plan_groups(entry_of(promises), short_draft, 1, offers);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message ==
        "the draft model llama-3.2-1b cannot be used: it has 4095 positions, the context has 4096: "
        "lower --context");
}

TEST_CASE("cluster plan: keys and values take what their kind takes") {
  const auto offers = offers_of({16 * kGib});
  const auto bytes = [&](const std::string& kv) {
    return plan_of({.context = 32768, .streams = 4, .kv = kv}, offers).ranks[0].bytes;
  };
  const int64_t half = bytes("");
  CHECK(bytes("f16") == half);
  const int64_t state = bytes("f32") - half;
  // Layers, keys and values, 8 heads of 64, 2 bytes more; and pages on their way to a disk.
  constexpr int64_t kState = int64_t{4} * 32768 * 16 * 2 * 8 * 64 * 2;
  CHECK(state >= kState);
  CHECK(state < kState + kState / 100);
  CHECK(bytes("q8") < half - state * 4 / 10);
  const auto refused = try_plan({.context = 4096, .streams = 1, .kv = "q2"}, offers);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("cluster plan: the planner needs the files of the draft model too") {
  std::atomic<bool> is_there{false};
  ClusterPlanner planner([&is_there](const std::string& path) -> Result<std::string> {
    if (path != "org/small") return path;
    if (is_there) return entry_of().path;
    return Error{ErrorCode::kNotFound, "its files are not on this node yet"};
  });
  const auto offers = offers_of({16 * kGib});
  DesiredEntry entry = entry_of({.context = 4096, .streams = 1});
  REQUIRE(comes_true([&] { return planner.plan(entry, 1, offers).ok(); }));
  const int64_t alone = planner.plan(entry, 1, offers).value()[0].ranks[0].bytes;
  entry.draft_model = "org/small";
  REQUIRE(comes_true([&] {
    const auto asked = planner.plan(entry, 1, offers);
    return !asked.ok() && asked.error().message == "its files are not on this node yet";
  }));
  is_there = true;
  REQUIRE(comes_true([&] { return planner.plan(entry, 1, offers).ok(); }));
  CHECK(planner.plan(entry, 1, offers).value()[0].ranks[0].bytes > 18 * alone / 10);
  entry.draft_model = shape_model_text({.shape = "qwen3-0.6b", .format = "bf16"});
  CHECK(comes_true([&] {
    const auto asked = planner.plan(entry, 1, offers);
    return !asked.ok() && asked.error().message ==
                              "the draft model qwen3-0.6b cannot be used: it has 151936 tokens and "
                              "the model 128256";
  }));
}

// Some tens of milliseconds of one processor, as the message shows.
TEST_CASE("cluster plan: twice the groups on twice the nodes take a few times the work") {
  constexpr double kGrowthMax = 32, kPlanningMaxMs = 2'000;
  const auto plan_groups = [](int groups) {
    std::vector<int64_t> free;
    for (int i = 0; i < 3 * groups; ++i) free.push_back((i % 3 + 1) * kGib);
    const auto offers = offers_of(free);
    const ModelPromises promises{.context = 4096, .streams = groups, .replicas = groups};
    return least_processor_ms(3, [&] {
      CHECK(plans_of(promises, groups, offers).size() == static_cast<size_t>(groups));
    });
  };
  const double few_ms = plan_groups(8), many_ms = plan_groups(16);
  MESSAGE(many_ms, " ms, for eight groups ", few_ms);
  CHECK(many_ms < kGrowthMax * few_ms);
  CHECK(many_ms < kPlanningMaxMs);
}

TEST_CASE("cluster plan: the planner reads in the background, and reports when it is done") {
  std::atomic<int> told{0};
  std::atomic<bool> is_there{false};
  ClusterPlanner planner([&is_there](const std::string& path) -> Result<std::string> {
    if (is_there) return path;
    return Error{ErrorCode::kNotFound, "its files are not on this node yet"};
  });
  planner.set_on_facts([&told] { ++told; });
  const auto offers = offers_of({8 * kGib});
  const DesiredEntry entry = entry_of({.context = 4096, .streams = 1});
  const auto first = planner.plan(entry, 1, offers);
  REQUIRE(!first.ok());
  CHECK(first.error().message.find("is being read") != std::string::npos);
  REQUIRE(comes_true([&] { return told == 1; }));
  CHECK(planner.plan(entry, 1, offers).error().message == "its files are not on this node yet");
  is_there = true;
  CHECK(comes_true([&] { return planner.plan(entry, 1, offers).ok(); }));
  CHECK(told == 3);  // of the missing files, the facts and the plan
  planner.set_on_facts({});
}

TEST_CASE("cluster plan: no plan is made on the thread that asks for it") {
  std::atomic<int> told{0};
  ClusterPlanner planner([](const std::string& path) -> Result<std::string> { return path; });
  planner.set_on_facts([&told] { ++told; });
  auto offers = offers_of({8 * kGib});
  const DesiredEntry entry = entry_of({.context = 4096, .streams = 1});
  CHECK_FALSE(planner.plan(entry, 1, offers).ok());
  REQUIRE(comes_true([&] { return told == 1; }));  // the facts are known
  const auto asked = planner.plan(entry, 1, offers);
  REQUIRE(!asked.ok());
  CHECK(asked.error().code == ErrorCode::kTimeout);
  CHECK(asked.error().message.find("is being looked for") != std::string::npos);
  REQUIRE(comes_true([&] { return told == 2; }));
  const auto made = planner.plan(entry, 1, offers);
  REQUIRE(made.ok());
  CHECK(made.value().size() == 1);
  // A new round trip does not send the caller round in circles, other memory needs another plan.
  offers[0].round_trips.push_back({});
  CHECK(planner.plan(entry, 1, offers).ok());
  offers[0].free_bytes -= 1;
  CHECK_FALSE(planner.plan(entry, 1, offers).ok());
  REQUIRE(comes_true([&] { return told == 3; }));
  CHECK(planner.plan(entry, 1, offers).ok());
  planner.set_on_facts({});
}

TEST_CASE("cluster plan: a model whose files hang delays no other model") {
  struct Mount {
    std::atomic<bool> is_gone{true};
    std::atomic<int> waiting{0};
  };
  // The planner's threads may outlive the test.
  const auto mount = std::make_shared<Mount>();
  ClusterPlanner planner([mount](const std::string& path) -> Result<std::string> {
    if (!path.starts_with("/mnt/gone")) return path;
    ++mount->waiting;
    mount->waiting.notify_all();
    mount->is_gone.wait(true);
    return Error{ErrorCode::kInternal, "the drive was gone"};
  });
  const auto offers = offers_of({8 * kGib});
  for (int i = 0; i < 3; ++i) {
    DesiredEntry hanging = entry_of();
    hanging.path = fmt::format("/mnt/gone/{}", i);
    CHECK_FALSE(planner.plan(hanging, 1, offers).ok());
  }
  for (int seen = mount->waiting; seen < 3; seen = mount->waiting) mount->waiting.wait(seen);
  const DesiredEntry entry = entry_of({.context = 4096, .streams = 1});
  CHECK(comes_true([&] { return planner.plan(entry, 1, offers).ok(); }));
  mount->is_gone = false;
  mount->is_gone.notify_all();
}

TEST_CASE("cluster plan: running out of memory while reading is an error of that model only") {
  std::atomic<int> told{0};
  ClusterPlanner planner([](const std::string& path) -> Result<std::string> {
    if (path == "huge") throw std::bad_alloc();
    return path;
  });
  planner.set_on_facts([&told] { ++told; });
  const auto offers = offers_of({8 * kGib});
  DesiredEntry huge = entry_of();
  huge.path = "huge";
  CHECK_FALSE(planner.plan(huge, 1, offers).ok());
  REQUIRE(comes_true([&] { return told == 1; }));
  CHECK(planner.plan(huge, 1, offers).error().message == "out of memory");
  const DesiredEntry entry = entry_of({.context = 4096, .streams = 1});
  CHECK(comes_true([&] { return planner.plan(entry, 1, offers).ok(); }));
  planner.set_on_facts({});
}

TEST_CASE("cluster plan: a budget leaves an eighth, at least 512 MiB, or a quarter if small") {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  CHECK(budget_of(8192 * kMib) == 7168 * kMib);
  CHECK(budget_of(2048 * kMib) == 1536 * kMib);
  CHECK(budget_of(1024 * kMib) == 768 * kMib);
  CHECK(budget_of(256 * kMib) == 192 * kMib);
  CHECK(budget_of(0) == 0);
  CHECK(default_budget_bytes().has_value());
}

TEST_CASE("cluster plan: memory is measured with an eighth of what is available") {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  CHECK(read_probe_bytes(16'384 * kMib, 1024 * kMib) == 1024 * kMib);
  CHECK(read_probe_bytes(16'384 * kMib, 256 * kMib) == 256 * kMib);
  CHECK(read_probe_bytes(512 * kMib, 256 * kMib) == 64 * kMib);
  CHECK(read_probe_bytes(63 * kMib, 256 * kMib) == 0);
  CHECK(read_probe_bytes(std::nullopt, 256 * kMib) == 0);
  const auto speed = measure_this_machine(16 * kMib);
  REQUIRE(speed.ok());
  CHECK(speed.value().read_bytes_s > 0);
  CHECK(measure_this_machine(0).value().read_bytes_s == 0);
}

TEST_CASE("cluster plan: a machine alone offers the GPU it computes on, else its processor") {
  OwnOffer gpu(NodeOffer{.node = {}, .free_bytes = 7 * kGib, .speed = 5, .operations_s = 3});
  const auto offer = gpu.get("box");
  REQUIRE(offer.ok());
  CHECK(offer.value().name == "box");
  CHECK(offer.value().free_bytes == 7 * kGib);
  CHECK(offer.value().speed == 5);
  CHECK(offer.value().operations_s == 3);
  OwnOffer processor;
  const auto other = processor.get("box");
  REQUIRE(other.ok());
  CHECK(other.value().free_bytes > 0);
  CHECK(other.value().operations_s > 3);
}
