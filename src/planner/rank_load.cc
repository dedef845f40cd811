#include "planner/rank_load.h"

#include <algorithm>
#include <cmath>

#include "device/packing/packing.h"
#include "model/forward/rope.h"
#include "model/load/page_shape.h"
#include "model/load/sequence_state.h"
#include "tensor/stored_check.h"

namespace lockstep {
namespace {

// Other memory of a rank's process: the program, thread stacks, scratch of kernels and exchanges,
// lists of weights, link frames.
constexpr uint64_t kProcessBytes = uint64_t{256} << 20;

bool is_of_feed_forward(Split split) {
  switch (split) {
    case Split::kFfn:
    case Split::kFfnColumns:
    case Split::kExpertFfn:
    case Split::kExpertFfnColumns:
    case Split::kSharedFfn:
    case Split::kSharedFfnColumns:
      return true;
    default:
      return false;
  }
}

std::vector<LeafStep> one_leaf(int columns) {
  return {{.columns = columns, .merges = 0, .ends_subtree = 1}};
}

std::vector<LeafStep> steps_of(const WeightFacts& facts, const Cut& cut, int rank, int columns) {
  switch (facts.weight.split) {
    case Split::kHeadColumns:
      return cut.head_steps(rank);
    case Split::kFfnColumns:
      return cut.ffn_steps(rank);
    case Split::kExpertFfnColumns:
      return cut.expert_steps(rank);
    case Split::kSharedFfnColumns:
      return cut.shared_steps(rank);
    default:
      return one_leaf(columns);
  }
}

uint64_t stored_bytes_of(const WeightFacts& facts, uint64_t elements) {
  return static_cast<uint64_t>(std::llround(facts.element_bytes * static_cast<double>(elements)));
}

void touch(const WeightFacts& facts, uint64_t elements, LayerLoad& load) {
  const auto part =
      is_of_feed_forward(facts.weight.split) ? LayerPart::kFeedForward : LayerPart::kMixer;
  TouchedWeights& touched = load.parts[static_cast<size_t>(part)];
  const double count = static_cast<double>(elements), bytes = facts.element_bytes * count;
  if (facts.weight.expert >= 0) {
    touched.expert_bytes += bytes;
    touched.expert_elements += count;
  } else {
    touched.bytes += bytes;
    touched.elements += count;
  }
}

uint64_t floats(uint64_t count) {
  return count * sizeof(float);
}

uint64_t latent_elements(const LatentConfig& latent, uint64_t heads) {
  const auto rank = static_cast<uint64_t>(latent.kv_rank),
             rope = static_cast<uint64_t>(latent.rope);
  return static_cast<uint64_t>(latent.query_rank) + rank + rope + heads * (rank + rope) +
         heads * rank;
}

// Elements per token of a step, in the order of Model::allocate_buffers().
uint64_t token_elements(const ModelConfig& config, const Cut& cut, int rank, const RankLoad& load,
                        bool has_head) {
  const auto number = [](int value) { return static_cast<uint64_t>(value); };
  const uint64_t hidden = number(config.hidden), head_dim = number(config.head_dim);
  const uint64_t heads = number(load.heads), chosen = number(config.experts.chosen);
  const uint64_t ffn = number(std::max(cut.ffn(rank).size(), cut.shared_ffn(rank).size()));
  const LatentConfig latent = config.latent.value_or(LatentConfig{});
  const int latents = latent.query_rank + latent.kv_rank + latent.rope;
  constexpr uint64_t kInts = 7;  // positions, offsets, pages, slots, rows, outputs, factors
  uint64_t elements = kInts + 3 * hidden + head_dim;
  elements += heads * head_dim + heads * number(config.value_dim);
  if (config.latent) elements += latent_elements(latent, heads);
  elements += 2 * number(cut.kv_heads(rank).size()) * head_dim + 2 * ffn;
  elements += number(config.experts.count) + 2 * chosen;
  elements += 3 * chosen * number(cut.expert_ffn(rank).size());
  elements += number(std::max(load.mixer_subtrees, load.feed_forward_subtrees)) * hidden;
  elements += std::max(hidden, number(cut.cuts_latents() ? latents : 0));
  return elements + number(has_head ? cut.vocabulary(rank).size() : 0);
}

// For the second half of a long batch (model/forward/overlap.h).
uint64_t second_half_elements(const ModelConfig& config, const RankLoad& load, uint64_t tokens) {
  const auto subtrees =
      static_cast<uint64_t>(std::max(load.mixer_subtrees, load.feed_forward_subtrees));
  return (subtrees * tokens / 2 + tokens / 2) * static_cast<uint64_t>(config.hidden);
}

}  // namespace

Result<uint64_t> RankCounter::packed(const PackKey& key, const MatrixSource& source) {
  const auto known = packed_.find(key);
  if (known != packed_.end()) return known->second;
  const uint64_t bytes = TRY(plan_packing(source, false)).bytes();
  packed_.emplace(key, bytes);
  return bytes;
}

// Each head has a matrix that maps its query to the latent's space and one that maps the latent to
// its value; see load_heads() in model/load/weights.cc.
Status RankCounter::add_heads(const WeightFacts& facts, int heads, LayerLoad& load) {
  const LatentConfig& latent = *facts_.config.latent;
  const bool is_split = facts.stored.size() > 1;
  const MatrixSource key{.stored = facts.stored.front(),
                         .rows = is_split ? latent.kv_rank : latent.nope,
                         .columns = is_split ? latent.nope : latent.kv_rank,
                         .is_transposed = !is_split,
                         .steps = one_leaf(latent.nope),
                         .keeps_float_input = true};
  const MatrixSource value{.stored = facts.stored.back(),
                           .row_begin = is_split ? 0 : latent.nope,
                           .rows = latent.value,
                           .columns = latent.kv_rank,
                           .steps = one_leaf(latent.kv_rank),
                           .keeps_float_input = true};
  const uint64_t bytes_of_head =
      TRY(packed({&facts, 0, 0, 0, 0, 0, 0}, key)) + TRY(packed({&facts, 1, 0, 0, 0, 0, 0}, value));
  load.packed_bytes += bytes_of_head * static_cast<uint64_t>(heads);
  return Ok{};
}

Status RankCounter::add(const WeightFacts& facts, const Cut& cut, int rank, LayerLoad& load) {
  const WeightPart part = part_of(facts.weight, cut, rank);
  const uint64_t elements = part.elements(), copies = static_cast<uint64_t>(facts.copies);
  touch(facts, elements, load);
  load.weight_bytes += stored_bytes_of(facts, elements) * copies;
  if (facts.weight.is_vector) {
    load.vector_bytes += floats(elements) * copies;
    return Ok{};
  }
  if (facts.weight.role == Role::kKvUp) return add_heads(facts, cut.heads(rank).size(), load);
  if (elements == 0) return Ok{};
  const PackKey key{&facts,           0, part.rows.begin, part.rows.end, part.columns.begin,
                    part.columns.end, 0};
  load.packed_bytes +=
      copies * TRY(packed(key, {.stored = facts.stored.front(),
                                .row_begin = part.rows.begin,
                                .rows = part.rows.size(),
                                .column_begin = part.columns.begin,
                                .columns = part.columns.size(),
                                .steps = steps_of(facts, cut, rank, part.columns.size())}));
  return Ok{};
}

Result<RankLoad> RankCounter::count(const Cut& cut, int rank) {
  const ModelConfig& config = facts_.config;
  RankLoad load;
  for (const LayerClass& layer : facts_.classes) {
    LayerLoad& sum = load.classes.emplace_back();
    for (const WeightFacts& weight : layer.weights) TRY(add(weight, cut, rank, sum));
  }
  for (const WeightFacts& weight : facts_.shared) {
    const bool is_embedding = weight.weight.role == Role::kEmbedding;
    if (is_embedding) TRY(add(weight, cut, rank, load.embedding));
    if (!is_embedding || config.tied_embeddings) TRY(add(weight, cut, rank, load.head));
  }
  load.heads = cut.heads(rank).size();
  load.state_heads = config.latent ? 1 : cut.kv_heads(rank).size();
  load.state_dim = config.latent ? config.latent->kv_rank + config.latent->rope : config.head_dim;
  constexpr uint64_t kKeysAndValues = 2;
  load.page_bytes = kKeysAndValues * floats(static_cast<uint64_t>(load.state_heads) *
                                            page_head_stride(load.state_dim));
  const auto subtrees = [&](const LeafShares& shares) {
    return static_cast<int>(shares.nodes(rank).size());
  };
  load.mixer_subtrees = subtrees(cut.head_shares());
  load.feed_forward_subtrees = std::max(subtrees(cut.ffn_shares()), subtrees(cut.expert_shares()));
  return load;
}

RankMemory rank_memory(const ModelFacts& facts, const Cut& cut, int rank, const RankLoad& load,
                       Range layers, const LoadLimits& limits) {
  const bool has_embedding = layers.begin == 0, has_head = layers.end == facts.config.layers;
  RankMemory memory{.process_bytes = kProcessBytes};
  // The ranks that choose tokens, and the leader, which checks constraints first.
  if (has_head || (has_embedding && rank == 0)) {
    memory.process_bytes += kGrammarBytesOfToken * static_cast<uint64_t>(facts.config.vocab_size);
  }
  const auto add = [&](const LayerLoad& part) {
    memory.weight_bytes += part.weight_bytes;
    memory.packed_bytes += part.packed_bytes;
    memory.vector_bytes += part.vector_bytes;
  };
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    add(load.classes[facts.class_of[static_cast<size_t>(layer)]]);
  }
  // A tied embedding is stored once on a rank that has both ends.
  if (has_head) add(load.head);
  if (has_embedding && !(has_head && facts.config.tied_embeddings)) add(load.embedding);
  // Each node decides for itself whether pages go to disk: memory for it is planned everywhere.
  const uint64_t page_bytes = load.page_bytes * static_cast<uint64_t>(layers.size());
  memory.process_bytes += page_staging_bytes(page_bytes);
  const auto pages =
      static_cast<uint64_t>(limits.streams) * static_cast<uint64_t>(pages_for(limits.context));
  memory.state_bytes = page_bytes * pages;
  const auto tokens = static_cast<uint64_t>(std::max(limits.batch_tokens_max, limits.streams));
  memory.buffer_bytes = floats(tokens * token_elements(facts.config, cut, rank, load, has_head)) +
                        floats(second_half_elements(facts.config, load, tokens)) +
                        pages * sizeof(int32_t) + rope_pairs(facts.config) * sizeof(double);
  return memory;
}

}  // namespace lockstep
