#include "planner/rank_load.h"

#include <algorithm>

#include "base/threads/work.h"
#include "device/packing/counting_device.h"
#include "model/forward/buffers.h"
#include "model/load/page_shape.h"
#include "model/load/sequence_state.h"

namespace lockstep {
namespace {

// Other memory of a rank's process: the program, thread stacks, scratch of kernels and exchanges,
// lists of weights, link frames.
constexpr uint64_t kProcessBytes = uint64_t{256} << 20;

void touch(const StoredWeight& stored, uint64_t elements, LayerLoad& load) {
  const auto part =
      is_cut_with_feed_forward(stored.weight) ? LayerPart::kFeedForward : LayerPart::kMixer;
  TouchedWeights& touched = load.parts[static_cast<size_t>(part)];
  const double count = static_cast<double>(elements), bytes = stored.element_bytes * count;
  if (stored.weight.expert >= 0) {
    touched.expert_bytes += bytes;
    touched.expert_elements += count;
  } else {
    touched.bytes += bytes;
    touched.elements += count;
  }
}

ModelMemory model_memory(const ModelFacts& facts, const Cut& cut, int rank, Range layers,
                         const LoadLimits& limits) {
  const auto pages =
      static_cast<size_t>(limits.streams) * static_cast<size_t>(pages_for(limits.context));
  return {.config = facts.config,
          .cut = cut,
          .rank = rank,
          .layers = layers,
          .tokens_max = static_cast<size_t>(std::max(limits.batch_tokens_max, limits.streams)),
          .pages = pages,
          .kv = limits.kv,
          .page_list_entries_max = pages,
          .states = static_cast<size_t>(states_needed(limits.streams))};
}

// Weights, state and activations.
Result<RankMemory> planned_memory(const ModelMemory& model, const ModelFacts& facts,
                                  const RankLoad& load) {
  RankMemory memory;
  const auto add = [&](const LayerLoad& part) {
    memory.weight_bytes += part.weight_bytes;
    memory.packed_bytes += part.packed_bytes;
    memory.vector_bytes += part.vector_bytes;
  };
  const Range layers = model.layers;
  // A pipeline leaves out layers that guess blocks: they are counted all the same.
  for (int layer = layers.begin; layer < facts.config.end_with_draft(layers.end); ++layer) {
    add(load.classes[facts.class_of[static_cast<size_t>(layer)]]);
  }
  for (size_t i = 0; i < facts.shared.size(); ++i) {
    if (is_loaded(facts.shared[i].weight, facts.config, layers)) add(load.shared[i]);
  }
  CountingDevice device;
  const StateBuffer state = TRY(allocate_state(model, device));
  const RecurrentBuffer recurrent = TRY(allocate_recurrent(model, device));
  memory.state_bytes = state.bytes + recurrent.bytes;
  TRY(allocate_buffers(model, device));
  memory.buffer_bytes = device.allocated_bytes() - memory.state_bytes;
  return memory;
}

}  // namespace

Status RankCounter::add(const StoredWeight& weight, const Cut& cut, int rank, LayerLoad& load) {
  const WeightBytes bytes = TRY(counter_.count(weight, cut, rank));
  if (weight.weight.role != Role::kNgramRows) {  // of which a token reads a few rows
    touch(weight, part_of(weight.weight, cut, rank).elements(), load);
  }
  load.weight_bytes += bytes.stored;
  load.packed_bytes += bytes.packed;
  load.vector_bytes += bytes.vectors;
  return Ok{};
}

Result<RankLoad> RankCounter::count(const Cut& cut, int rank) {
  TRY(Work::check());  // most of a plan's time is spent here
  const ModelConfig& config = facts_.config;
  RankLoad load;
  for (const LayerClass& layer : facts_.classes) {
    LayerLoad& sum = load.classes.emplace_back();
    for (const StoredWeight& weight : layer.weights) TRY(add(weight, cut, rank, sum));
  }
  for (const StoredWeight& weight : facts_.shared) {
    const Role role = weight.weight.role;
    TRY(add(weight, cut, rank, load.shared.emplace_back()));
    if (is_looked_up(role, config.tied_embeddings)) continue;
    TRY(add(weight, cut, rank, makes_layer_inputs(role) ? load.entry : load.head));
  }
  load.heads = cut.heads(rank).size();
  const StateShape state = state_shape(config.attention_layer().state, cut, rank);
  load.state_heads = state.heads.size();
  load.state_dim = state.key_dim;
  const auto subtrees = [&](const LeafShares& shares) {
    return static_cast<int>(shares.nodes(rank).size());
  };
  load.mixer_subtrees = subtrees(cut.head_shares());
  if (config.delta) {
    load.mixer_subtrees = std::max(load.mixer_subtrees, subtrees(cut.delta_shares()));
    load.recurrent_bytes =
        static_cast<double>(delta_shape(*config.delta, cut, rank).size) * Slice::kElementBytes;
  }
  load.feed_forward_subtrees = std::max(subtrees(cut.ffn_shares()), subtrees(cut.expert_shares()));
  return load;
}

Result<RankMemory> rank_memory(const ModelFacts& facts, const Cut& cut, int rank,
                               const RankLoad& load, Range layers, const LoadLimits& limits) {
  ModelMemory model = model_memory(facts, cut, rank, layers, limits);
  model.window_pages =
      static_cast<size_t>(window_pages_needed({.reach = facts.config.reach(),
                                               .sequences = limits.streams,
                                               .tokens_max = static_cast<int>(model.tokens_max),
                                               .pages = static_cast<int>(model.pages)}));
  RankMemory memory = TRY(planned_memory(model, facts, load));
  memory.process_bytes = kProcessBytes;
  // The ranks that choose tokens, and the leader, which checks constraints first.
  if (model.has_head() || (layers.begin == 0 && rank == 0)) {
    memory.process_bytes += kGrammarBytesOfToken * static_cast<uint64_t>(facts.config.vocab_size);
  }
  // Each node decides for itself whether state goes to disk: memory for it is planned everywhere.
  const PageShape page = part_shape(model, StatePart::kPage);
  const PageShape outside = model.window_pages > 0
                                ? part_shape(model, StatePart::kWindow)
                                : recurrent_shape(facts.config, cut, rank, layers);
  memory.process_bytes +=
      page_staging_bytes(page.page_bytes()) + state_staging_bytes(outside.page_bytes());
  return memory;
}

Result<RankMemory> draft_model_memory(const ModelFacts& facts, const Cut& cut, int rank,
                                      const RankLoad& load, const LoadLimits& limits) {
  return planned_memory(model_memory(facts, cut, rank, {0, facts.config.layers}, limits), facts,
                        load);
}

}  // namespace lockstep
