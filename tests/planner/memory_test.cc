// The planner's memory figures, byte for byte against the allocations of Model::load.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "device/packing/counting_device.h"
#include "device/packing/packing.h"
#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/page_shape.h"
#include "model/load/sequence_state.h"
#include "planner/explain.h"
#include "planner/plan.h"
#include "planner/rank_load.h"
#include "support/golden.h"
#include "transport/unformed_link.h"

using namespace lockstep;

namespace {

// Counts what reaches a real device.
class WatchedDevice final : public Device {
 public:
  WatchedDevice()
      : device_(std::move(
            open_device({.kind = "cpu", .kernels = available_kernels().back()}).value())) {}

  Result<BufferId> allocate(size_t bytes, Access access) override {
    allocated_ += bytes;
    return device_->allocate(bytes, access);
  }
  Result<MatrixId> pack(const MatrixSource& source) override {
    packed_ += TRY(plan_packing(source, source.keeps_float_input)).bytes();
    return device_->pack(source);
  }
  void write(Slice target, std::span<const std::byte> bytes) override {
    device_->write(target, bytes);
  }
  void read(Slice source, std::span<std::byte> bytes) override { device_->read(source, bytes); }
  void queue(const Operation& operation) override { device_->queue(operation); }
  Status run(const Turns& turn) override { return device_->run(turn); }
  std::span<float> host(BufferId buffer) override { return device_->host(buffer); }
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override {
    device_->lend(buffers, std::move(meanwhile));
  }
  void take_back() override { device_->take_back(); }
  uint64_t wait_count() const override { return device_->wait_count(); }
  std::string description() const override { return device_->description(); }

  uint64_t allocated() const { return allocated_; }
  uint64_t packed() const { return packed_; }

 private:
  std::unique_ptr<Device> device_;
  uint64_t allocated_ = 0;
  uint64_t packed_ = 0;
};

constexpr uint64_t kProgramBytes = uint64_t{256} << 20;  // the allowance of docs/planner.md
constexpr LinkFigures kLink{.kind = LinkKind::kTcp, .latency_us = 10, .bytes_per_us = 1000};

ClusterFacts cluster_of_rates(std::initializer_list<double> rates) {
  ClusterFacts cluster{{}, LinkTable::uniform(rates.size(), kLink)};
  for (const double rate : rates) {
    cluster.machines.push_back({.name = "m" + std::to_string(cluster.machines.size()),
                                .memory_bytes = uint64_t{1} << 40,
                                .read_bytes_per_us = rate});
  }
  return cluster;
}

struct PlannedModel {
  OpenedModel model;
  ModelFacts facts;

  explicit PlannedModel(const std::string& name, bool has_draft_layer = false,
                        bool ngrams_on_disk = false) {
    auto opened = open_model(name);
    REQUIRE_MESSAGE(opened.ok(), opened.error().message);
    model = std::move(opened.value());
    if (has_draft_layer) use_draft_layer(model);
    if (ngrams_on_disk) REQUIRE(leave_ngrams_on_disk(model.config).ok());
    REQUIRE(model.config.has_draft_layer() == has_draft_layer);
    auto known = model_facts(model);
    REQUIRE_MESSAGE(known.ok(), known.error().message);
    facts = std::move(known.value());
  }
};

// The state is pages and window pages.
void check_state(const ModelOptions& options, const Model& loaded, int rank) {
  CountingDevice counting;
  const auto pages = static_cast<size_t>(options.pages);
  const auto windows = static_cast<size_t>(options.window_pages);
  const auto state = allocate_state({.config = options.config,
                                     .cut = loaded.cut(),
                                     .rank = rank,
                                     .layers = options.layers.value(),
                                     .pages = pages,
                                     .window_pages = windows,
                                     .kv = options.kv},
                                    counting);
  REQUIRE(state.ok());
  CHECK(state.value().bytes ==
        state.value().page_bytes * pages + state.value().window_bytes * windows);
}

// In the process of a rank with these options.
std::unique_ptr<Model> load_draft_model(ModelOptions options, const PlannedModel& draft,
                                        Group& group, Device& device) {
  options.config = draft.model.config;
  options.source = draft.model.source;
  options.layers = {0, draft.model.config.layers};
  options.window_pages = options.states = 0;
  auto loaded = Model::load(options, group, device);
  REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
  return std::move(loaded.value());
}

// Loads a rank as the engine does, and compares. `draft`: guesses for it; null: none.
void check_rank(const PlannedModel& planned_model, const PlannedModel* draft,
                const PlacedGroup& group, size_t index, const LoadLimits& limits) {
  const OpenedModel& model = planned_model.model;
  const ModelFacts& facts = planned_model.facts;
  std::vector<double> shares;
  for (const PlacedGroup::Rank& rank : group.ranks) shares.push_back(rank.share);
  const size_t ranks = shares.size() / static_cast<size_t>(group.stages);
  const size_t stage = index / ranks;
  std::vector<Range> layers{{0, model.config.layers}};
  if (group.stages > 1) {
    const auto dealt = deal_layers(facts.token_bytes, stage_shares(shares, group.stages));
    REQUIRE(dealt.ok());
    layers = dealt.value();
  }
  const auto first = shares.begin() + static_cast<std::ptrdiff_t>(stage * ranks);
  const int rank = static_cast<int>(index % ranks),
            pages = limits.streams * pages_for(limits.context);
  const int tokens_max = std::max(limits.batch_tokens_max, limits.streams);
  const int windows = window_pages_needed({.reach = model.config.reach(),
                                           .sequences = limits.streams,
                                           .tokens_max = tokens_max,
                                           .pages = pages});
  Group unformed({.rank = rank, .links = unformed_links(rank, static_cast<int>(ranks))});
  WatchedDevice device;
  ModelOptions options{.config = model.config,
                       .source = model.source,
                       .shares = {first, first + static_cast<std::ptrdiff_t>(ranks)},
                       .layers = layers[stage],
                       .tokens_max = tokens_max,
                       .pages = pages,
                       .window_pages = windows,
                       .states = states_needed(limits.streams),
                       .kv = limits.kv,
                       .page_list_entries_max = pages,
                       .link = kLink.kind};
  const auto loaded = Model::load(options, unformed, device);
  REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
  uint64_t weight_bytes = loaded.value()->weights().weight_bytes;
  uint64_t state_bytes = loaded.value()->state_bytes();
  std::unique_ptr<Model> guesses;
  if (draft != nullptr && stage == 0) {
    guesses = load_draft_model(options, *draft, unformed, device);
    weight_bytes += guesses->weights().weight_bytes;
    state_bytes += guesses->state_bytes();
  }
  const PlacedGroup::Rank& planned = group.ranks[index];
  CHECK(planned.layers.begin == layers[stage].begin);
  CHECK(planned.layers.end == layers[stage].end);
  CHECK(planned.memory.weight_bytes == weight_bytes);
  CHECK(planned.memory.state_bytes == state_bytes);
  CHECK(planned.memory.packed_bytes == device.packed());
  CHECK(planned.memory.vector_bytes + planned.memory.state_bytes + planned.memory.buffer_bytes ==
        device.allocated());
  check_state(options, *loaded.value(), rank);
  const bool makes_grammars = index == 0 || layers[stage].end == model.config.layers;
  const uint64_t grammar_bytes =
      makes_grammars ? kGrammarBytesOfToken * static_cast<uint64_t>(model.config.vocab_size) : 0;
  const PageShape outside = loaded.value()->limits().window_pages > 0
                                ? loaded.value()->page_shape(StatePart::kWindow)
                                : loaded.value()->recurrent_shape();
  CHECK(planned.memory.process_bytes ==
        kProgramBytes +
            page_staging_bytes(loaded.value()->page_shape(StatePart::kPage).page_bytes()) +
            state_staging_bytes(outside.page_bytes()) + grammar_bytes);
}

// Every placement that the planner proposes, with its proposed shares.
int check_all(const PlannedModel& model, const PlannedModel* draft,
              std::initializer_list<double> rates, LoadLimits limits) {
  const auto plan =
      plan_model(model.facts, cluster_of_rates(rates),
                 {.limits = limits, .draft_model = draft == nullptr ? nullptr : &draft->facts});
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  int ranks = 0;
  for (const PlannedPlacement& placement : plan.value().fitting) {
    CAPTURE(placement_kind_name(placement.placement.kind));
    for (const PlacedGroup& group : placement.placement.groups) {
      for (size_t i = 0; i < group.ranks.size(); ++i) {
        CAPTURE(i);
        LoadLimits own = limits;
        if (placement.placement.kind == PlacementKind::kReplicas) {
          const auto groups = static_cast<int>(placement.placement.groups.size());
          own.streams = (limits.streams + groups - 1) / groups;
        }
        check_rank(model, draft, group, i, own);
        ++ranks;
      }
    }
  }
  return ranks;
}

int check_all(const std::string& name, std::initializer_list<double> rates, LoadLimits limits,
              bool has_draft_layer = false) {
  return check_all(PlannedModel(name, has_draft_layer), nullptr, rates, limits);
}

}  // namespace

TEST_CASE("planned memory equals a model's allocations, in every format and kind of attention") {
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(""))) {
    if (!entry.is_directory()) continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    CHECK(check_all(path, {3, 1}, {.context = 100, .streams = 2}) >= 5);
    ++cases;
  }
  // A case that is not in the lists would be tested nowhere else.
  CHECK(cases == all_golden_cases().size() + kDraftGoldenCases.size());
}

TEST_CASE("planned memory equals a model's allocations with its draft layer") {
  std::vector<std::string> names(kDraftGoldenCases.begin(), kDraftGoldenCases.end());
  names.emplace_back("deepseekv4-dspark");
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(check_all(golden_folder(name), {3, 1}, {.context = 100, .streams = 2}, true) >= 5);
  }
}

TEST_CASE("planned memory equals a model's allocations with its table of n-grams on the disk") {
  const std::string name = golden_folder("qwen4exp-bf16");
  const PlannedModel held(name), left(name, false, true);
  CHECK(check_all(left, nullptr, {3, 1}, {.context = 100, .streams = 2}) >= 5);
  CHECK(ngrams_hint(left.facts).empty());
  CHECK(ngrams_hint(held.facts).find("--ngrams-on-disk") != std::string::npos);
  const auto weights_of = [](const PlannedModel& model) {
    const auto plan = plan_model(model.facts, cluster_of_rates({1}), {.limits = {.context = 100}});
    REQUIRE(plan.ok());
    const PlacedGroup& group = plan.value().fitting.front().placement.groups.front();
    return group.ranks.front().memory.weight_bytes;
  };
  const NgramConfig& ngrams = *held.model.config.ngrams;
  const auto rows = static_cast<uint64_t>(ngrams.parts) * static_cast<uint64_t>(ngrams.part_rows);
  CHECK(weights_of(held) - weights_of(left) == rows * static_cast<uint64_t>(ngrams.row) * 2);
}

TEST_CASE("planned memory equals the allocations of a model and its draft model") {
  struct Pair {
    const char* model;
    const char* draft;
  };
  // Latent attention, windows, and another number of heads.
  for (const Pair& pair :
       {Pair{"qwen35-bf16", "glm47flash-bf16"}, Pair{"llama3-q4-g64", "gptoss-mxfp4"},
        Pair{"deepseekv4-bf16", "gemma4-e-bf16"}}) {
    CAPTURE(pair.model);
    const PlannedModel model(golden_folder(pair.model)), draft(golden_folder(pair.draft));
    CHECK(check_all(model, &draft, {3, 1}, {.context = 100, .streams = 2}) >= 5);
    CHECK(check_all(model, &draft, {5, 3, 2, 2}, {.context = 64, .streams = 1}) > 8);
  }
}

TEST_CASE("planned memory equals a model's allocations over several machines and stages") {
  for (const char* name : {"llama3-q4-g64", "qwen3moe-bf16", "deepseekv3-q4-g64"}) {
    CAPTURE(name);
    const std::string path = golden_folder(name);
    CHECK(check_all(path, {5, 3, 2, 2}, {.context = 64, .streams = 3, .batch_tokens_max = 2}) > 12);
  }
}

TEST_CASE("planned memory equals a model's allocations for every kind of keys and values") {
  for (const char* name : {"llama3-q4-g64", "deepseekv3-q4-g64"}) {
    CAPTURE(name);
    for (KvKind kv : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
      CAPTURE(kv_kind_name(kv));
      CHECK(check_all(golden_folder(name), {2, 1}, {.context = 100, .kv = kv}) >= 5);
    }
  }
}

TEST_CASE("planned memory of a shape equals the allocations of its random weights") {
  CHECK(check_all("shape:qwen3-0.6b?format=q4_k&layers=2", {1, 1}, {.context = 512}) >= 5);
  CHECK(check_all("shape:qwen3-0.6b?format=gptq4&layers=2", {1, 2}, {.context = 65}) >= 5);
}
