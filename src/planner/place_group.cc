#include "planner/place_group.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"
#include "model/load/latent_cut.h"

namespace lockstep {
namespace {

// How often shares that did not fit are reduced and tried again.
constexpr int kAttemptsMax = 8;
// Takes away a little more than was lacking, since shares are rounded to leaves.
constexpr double kShrink = 0.99;

bool is_like(const Machine& a, Machine b) {
  b.name = a.name;
  return a == b;
}

std::vector<size_t> kinds_of(const ClusterFacts& cluster) {
  std::vector<size_t> kinds;
  for (size_t i = 0; i < cluster.machines.size(); ++i) {
    size_t kind = i;
    for (size_t other = 0; other < i && cluster.links.is_uniform() && kind == i; ++other) {
      if (is_like(cluster.machines[other], cluster.machines[i])) kind = other;
    }
    kinds.push_back(kind);
  }
  return kinds;
}

// Inside a stage the fastest come first, so that unequal shares end at the borders of subtrees.
void sort_stages(const ClusterFacts& cluster, size_t ranks, std::vector<size_t>& machines) {
  for (size_t begin = 0; begin < machines.size(); begin += ranks) {
    const auto first = machines.begin() + static_cast<std::ptrdiff_t>(begin);
    std::stable_sort(first, first + static_cast<std::ptrdiff_t>(ranks), [&](size_t a, size_t b) {
      return cluster.machines[a].read_bytes_per_us > cluster.machines[b].read_bytes_per_us;
    });
  }
}

}  // namespace

// The inputs of one round of the search, and the loads it counted.
struct GroupPlacer::Attempt {
  std::vector<size_t> machines;
  size_t stages = 1;
  int streams = 1;
  std::vector<double> stage_weights;  // for dividing the layers
  std::vector<RankWish> wishes;       // (ranks), within a stage
  std::vector<double> shares;         // (ranks), as passed to the engine
  LinkKind kind = LinkKind::kShm;     // the slowest of all links
  std::deque<RankLoad> loads;         // (ranks), at stable addresses; then the draft model's
  std::vector<StageView> views;
  StageView draft_view;

  size_t ranks() const { return machines.size() / stages; }
};

GroupPlacer::GroupPlacer(const ModelFacts& facts, const ClusterFacts& cluster,
                         const PlanRequest& request)
    : facts_(facts),
      cluster_(cluster),
      request_(request),
      counter_(facts),
      kinds_(kinds_of(cluster)) {
  if (request.draft_model) draft_counter_.emplace(*request.draft_model);
  const double one = 1;
  const auto cut = Cut::make(facts.config, {&one, 1}, {facts.alignment, false});
  LOCKSTEP_CHECK(cut.ok());
  const bool is_sparse = facts.config.experts.count > 0;
  const LeafShares& shares = is_sparse ? cut.value().expert_shares() : cut.value().ffn_shares();
  dealer_.emplace(shares.leaf_count());
  for (const LayerClass& layer : facts.classes) {
    for (const StoredWeight& weight : layer.weights) {
      whole_bytes_ += weight.element_bytes * weight.copies * weight.weight.rows *
                      weight.weight.columns * layer.layers;
    }
  }
}

Result<std::optional<GroupPlan>> GroupPlacer::place(std::vector<size_t> machines, int stages,
                                                    int streams) {
  LOCKSTEP_CHECK(!machines.empty() && machines.size() % static_cast<size_t>(stages) == 0);
  sort_stages(cluster_, machines.size() / static_cast<size_t>(stages), machines);
  Key key{machines, stages, streams};
  for (size_t& machine : std::get<0>(key)) machine = kinds_[machine];
  auto known = known_.find(key);
  if (known == known_.end()) {
    auto found = TRY(search(machines, stages, streams));
    known = known_.emplace(std::move(key), std::move(found)).first;
  }
  std::optional<GroupPlan> plan = known->second;
  for (size_t rank = 0; plan && rank < machines.size(); ++rank) {
    plan->group.ranks[rank].machine = machines[rank];
  }
  return plan;
}

Result<std::optional<GroupPlan>> GroupPlacer::search(const std::vector<size_t>& machines,
                                                     int stages, int streams) {
  if (stages > facts_.token_bytes.stages_max()) return std::optional<GroupPlan>();
  Attempt next{.machines = machines, .stages = static_cast<size_t>(stages), .streams = streams};
  if (machines.size() > 1) {
    const auto slowest = cluster_.links.slowest(machines);
    if (!slowest) return std::optional<GroupPlan>();
    next.kind = slowest->kind;
  }
  next.stage_weights.assign(next.stages, 0.0);
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    const Machine& machine = cluster_.machines[machines[rank]];
    const auto memory = static_cast<double>(machine.memory_bytes);
    next.stage_weights[rank / next.ranks()] += machine.read_bytes_per_us;
    next.wishes.push_back({.speed = machine.read_bytes_per_us,
                           .part_max = memory / whole_bytes_ * static_cast<double>(stages)});
  }
  std::optional<GroupPlan> best;
  for (int i = 0; i < kAttemptsMax && (!best || best->misfits > 0); ++i) {
    GroupPlan plan = TRY(attempt(next));
    limit_shares(plan, next);
    if (!best || plan.lacking_bytes < best->lacking_bytes) best = std::move(plan);
  }
  return best;
}

Result<GroupPlan> GroupPlacer::attempt(Attempt& attempt) {
  GroupPlan plan{.streams = attempt.streams};
  plan.group.stages = static_cast<int>(attempt.stages);
  plan.group.ranks.resize(attempt.machines.size());
  attempt.loads.clear();
  attempt.views.clear();
  attempt.shares = shares_of(attempt);
  std::vector<Range> layers{{0, facts_.config.layers}};
  if (attempt.stages > 1) {  // from the same sums as the engine, to the bit
    const auto sums = stage_shares(attempt.shares, plan.group.stages);
    layers = TRY(deal_layers(facts_.token_bytes, sums));
  }
  for (size_t stage = 0; stage < attempt.stages; ++stage) {
    TRY(place_stage(attempt, stage, layers[stage], plan));
  }
  if (request_.draft_model) TRY(place_draft_model(attempt, plan));
  for (const PlacedGroup::Rank& rank : plan.group.ranks) {
    const uint64_t has = cluster_.machines[rank.machine].memory_bytes;
    if (rank.memory.total() <= has) continue;
    ++plan.misfits;
    plan.lacking_bytes += rank.memory.total() - has;
  }
  predict(attempt, plan);
  return plan;
}

std::vector<double> GroupPlacer::shares_of(const Attempt& attempt) const {
  const auto ranks = static_cast<std::ptrdiff_t>(attempt.ranks());
  std::vector<double> shares;
  for (size_t stage = 0; stage < attempt.stages; ++stage) {
    const auto first = attempt.wishes.begin() + static_cast<std::ptrdiff_t>(stage) * ranks;
    std::vector<RankWish> wishes(first, first + ranks);
    auto leaves = dealer_->of(wishes);
    if (!leaves) {  // it cannot fit: shows what each lacks if all are filled alike
      for (RankWish& wish : wishes) wish = {.speed = wish.part_max};
      leaves = dealer_->of(wishes);
    }
    for (const int own : *leaves) {
      // Every rank has a share even if leaves are too few for all; it holds the parts not cut.
      constexpr double kPartMin = 1e-6;
      const double part = std::max(own / static_cast<double>(dealer_->leaves()), kPartMin);
      shares.push_back(attempt.stage_weights[stage] * part);
    }
  }
  return shares;
}

Result<Cut> GroupPlacer::cut_of(const ModelFacts& facts, const Attempt& attempt, size_t stage,
                                StageView& view) const {
  const size_t ranks = attempt.ranks();
  const std::span<const double> shares(attempt.shares.data() + stage * ranks, ranks);
  view.cuts_latents = cuts_latents(LatentCut::kAuto, {.layer_bytes = facts.latent_layer_bytes,
                                                      .rows = facts.config.latent.rows(),
                                                      .ranks = static_cast<int>(ranks),
                                                      .link = attempt.kind});
  view.class_layers.assign(facts.classes.size(), 0);
  for (int layer = view.layers.begin; layer < view.layers.end; ++layer) {
    ++view.class_layers[facts.class_of[static_cast<size_t>(layer)]];
  }
  for (size_t i = 0; i < ranks; ++i) {
    view.machines.push_back(&cluster_.machines[attempt.machines[stage * ranks + i]]);
  }
  return Cut::make(facts.config, shares, {facts.alignment, view.cuts_latents});
}

Status GroupPlacer::place_stage(Attempt& attempt, size_t stage, Range layers, GroupPlan& plan) {
  const size_t first = stage * attempt.ranks();
  StageView& view = attempt.views.emplace_back();
  view.layers = layers;
  const Cut cut = TRY(cut_of(facts_, attempt, stage, view));
  LoadLimits limits = request_.limits;
  limits.streams = attempt.streams;
  for (size_t i = 0; i < attempt.ranks(); ++i) {
    const auto in_stage = static_cast<int>(i);
    const RankLoad& load = attempt.loads.emplace_back(TRY(counter_.count(cut, in_stage)));
    view.loads.push_back(&load);
    const RankMemory memory = TRY(rank_memory(facts_, cut, in_stage, load, layers, limits));
    plan.group.ranks[first + i] = {
        .machine = attempt.machines[first + i],
        .share = attempt.shares[first + i],
        .layers = layers,
        .subtrees = std::max(load.mixer_subtrees, load.feed_forward_subtrees),
        .memory = memory};
  }
  return Ok{};
}

Status GroupPlacer::place_draft_model(Attempt& attempt, GroupPlan& plan) {
  const ModelFacts& facts = *request_.draft_model;
  attempt.draft_view = {.layers = {0, facts.config.layers}};
  const Cut cut = TRY(cut_of(facts, attempt, 0, attempt.draft_view));
  LoadLimits limits = request_.limits;
  limits.streams = attempt.streams;
  for (size_t i = 0; i < attempt.ranks(); ++i) {
    const auto rank = static_cast<int>(i);
    const RankLoad& load = attempt.loads.emplace_back(TRY(draft_counter_->count(cut, rank)));
    attempt.draft_view.loads.push_back(&load);
    plan.group.ranks[i].memory.add(TRY(draft_model_memory(facts, cut, rank, load, limits)));
  }
  return Ok{};
}

// Reduces the shares of the ranks that lack memory, for the next attempt.
void GroupPlacer::limit_shares(const GroupPlan& plan, Attempt& attempt) const {
  const size_t ranks = attempt.ranks();
  std::vector<double> sums(attempt.stages, 0.0);
  for (size_t i = 0; i < plan.group.ranks.size(); ++i) sums[i / ranks] += plan.group.ranks[i].share;
  for (size_t stage = 0; stage < attempt.stages; ++stage) {
    double needed = 0, has = 0;
    for (size_t i = stage * ranks; i < (stage + 1) * ranks; ++i) {
      const PlacedGroup::Rank& rank = plan.group.ranks[i];
      const auto fixed = static_cast<double>(rank.memory.process_bytes + rank.memory.buffer_bytes);
      const double own = static_cast<double>(rank.memory.total()) - fixed;
      const double room =
          std::max(1.0, static_cast<double>(cluster_.machines[rank.machine].memory_bytes) - fixed);
      needed += own;
      has += room;
      const double part = rank.share / sums[stage];
      if (own > room) attempt.wishes[i].part_max = kShrink * part * room / own;
    }
    if (needed > has) attempt.stage_weights[stage] *= kShrink * has / needed;
  }
}

void GroupPlacer::predict(const Attempt& attempt, GroupPlan& plan) const {
  GroupView view{facts_, attempt.views, request_.limits.kv};
  const size_t ranks = attempt.ranks();
  for (size_t stage = 0; stage < attempt.stages; ++stage) {
    const size_t first = stage * ranks, next = (stage + 1) % attempt.stages * ranks;
    const std::span<const size_t> own(attempt.machines.data() + first, ranks);
    view.stages[stage].link = cluster_.links.slowest(own).value_or(LinkFigures{});
    if (attempt.stages == 1) continue;
    const auto& way = cluster_.links.between(attempt.machines[first], attempt.machines[next]);
    view.stages[stage].next_link = *way;  // search() has checked that it exists
  }
  const int context = request_.limits.context;
  plan.token = token_time(view, {1, context});
  plan.decode_tok_s = 1e6 / plan.token.total();
  plan.short_tok_s = 1e6 / token_time(view, {1, 1}).total();
  plan.total_tok_s = tokens_per_s(view, {attempt.streams, context});
  plan.draft_tok_s = drafted_tok_s(attempt, view);
  plan.first_token_s =
      prompt_us(view, request_.prompt_tokens, request_.limits.batch_tokens_max) / 1e6;
  plan.joule_per_token = joule_per_token(view, {attempt.streams, context});
}

double GroupPlacer::drafted_tok_s(const Attempt& attempt, const GroupView& view) const {
  const int context = request_.limits.context;
  if (!request_.draft_model) return drafted_tokens_per_s(view, context, request_.draft_right);
  GroupView draft{*request_.draft_model, {attempt.draft_view}, request_.limits.kv};
  draft.stages[0].link = view.stages[0].link;
  return drafted_tokens_per_s(view, draft, context, request_.draft_right);
}

}  // namespace lockstep
