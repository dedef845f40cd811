#include "model/load/weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "base/files/mapped_file.h"
#include "kernels/math.h"
#include "model/load/stored_forms.h"
#include "tensor/half.h"
#include "tensor/stored_check.h"
#include "tensor/stored_ranges.h"

namespace lockstep {
namespace {

static_assert(kChosenExpertsMax < kMatmulPartsMax && kLatentHeadsMax <= kHeadMatricesMax);

void give_back(const StoredMatrix& m) {
  if (!m.is_mapped_file) return;
  for (const auto& part : {m.codes, m.scales, m.biases, m.zeros}) release_pages(part);
}

// MLX, which stores the weights themselves, also turns the convolutions around: (channels, taps, 1)
// where the published files have (channels, 1, taps).
bool adds_to_norms(const WeightSource& source, const ModelConfig& config,
                   const std::vector<Weight>& table) {
  if (!config.architecture->lowers_norms) return false;
  for (const Weight& weight : table) {
    if (weight.role != Role::kDeltaConvolution) continue;
    const std::vector<int64_t> shape = source.shape_of(weight.name);
    return shape.size() == 3 && shape[1] == 1;
  }
  return false;
}

// Queries, keys or values, if each has a convolution of its own.
std::optional<size_t> convolution_block(Role role) {
  if (role == Role::kDeltaQueryConvolution) return 0;
  if (role == Role::kDeltaKeyConvolution) return 1;
  if (role == Role::kDeltaValueConvolution) return 2;
  return std::nullopt;
}

std::vector<float> repeated(const std::vector<float>& values, int times) {
  std::vector<float> all;
  for (const float value : values) all.insert(all.end(), static_cast<size_t>(times), value);
  return all;
}

bool is_norm_of_streams(Role role) {
  return role == Role::kAttentionStreamsNorm || role == Role::kFeedForwardStreamsNorm ||
         role == Role::kLastStreamsNorm;
}

bool is_lowered(Role role) {
  switch (role) {
    case Role::kFinalNorm:
    case Role::kAttentionNorm:
    case Role::kFeedForwardNorm:
    case Role::kQueryNorm:
    case Role::kKeyNorm:
    case Role::kDraftTokenNorm:
    case Role::kDraftHiddenNorm:
    case Role::kDraftNorm:
    case Role::kIndexKeyNorm:
    case Role::kIndexQueryNorm:
    case Role::kNgramKeyNorm:
    case Role::kNgramQueryNorm:
    case Role::kNgramConvolutionNorm:
      return true;
    default:
      return is_norm_of_streams(role);
  }
}

class Loader {
 public:
  explicit Loader(const LoadContext& context)
      : source_(context.source),
        config_(context.config),
        layers_(context.share.layers),
        cut_(context.share.cut),
        rank_(context.share.rank),
        device_(context.device),
        progress_(context.progress) {}

  Result<Weights> load() {
    const std::vector<Weight> table = weight_table(config_);
    adds_to_norms_ = adds_to_norms(source_, config_, table);
    adds_to_draft_norms_ =
        config_.architecture->lowers_norms && source_.lowers_draft_norms().value_or(adds_to_norms_);
    weights_.layers.resize(config_.traits.size());
    if (config_.ngrams) {
      weights_.ngrams = published_constants(*config_.ngrams, config_.vocab_size);
    }
    for (const Weight& weight : table) {
      if (is_loaded(weight, config_, layers_)) TRY(load_one(weight, place_of(weight)));
    }
    if (config_.experts.count > 0) {
      weights_.token_bytes += expert_bytes_ / static_cast<uint64_t>(config_.experts.count) *
                              static_cast<uint64_t>(config_.experts.chosen);
    }
    if (config_.tied_embeddings && has_head()) {
      auto& matrices = weights_.shared.matrices;
      matrices[static_cast<size_t>(Role::kLogits)] = weights_.shared.matrix(Role::kEmbedding);
    }
    return std::move(weights_);
  }

  Result<uint64_t> whole_bytes() const {
    uint64_t bytes = 0;
    for (const Weight& weight : weight_table(config_)) {
      if (is_loaded(weight, config_, layers_)) bytes += TRY(bytes_of(weight));
    }
    return bytes;
  }

  Result<uint64_t> load_alone(const Weight& weight, LayerWeights& place) {
    TRY(load_one(weight, place));
    return weights_.weight_bytes;
  }

 private:
  bool has_head() const { return layers_.end == config_.layers; }

  LayerWeights& place_of(const Weight& weight) {
    return weight.layer < 0 ? weights_.shared : weights_.layers[static_cast<size_t>(weight.layer)];
  }

  // As count() counts it.
  Result<uint64_t> bytes_of(const Weight& weight) const {
    const WeightPart part = part_of(weight, cut_, rank_);
    if (weight.is_vector) {
      const StoredVector stored = TRY(source_.vector(weight.name, weight.expert, weight.rows));
      return static_cast<uint64_t>(part.rows.size()) * dtype_bytes(stored.dtype);
    }
    if (weight.role != Role::kKvUp || !has_split_heads(source_, weight)) {
      const StoredMatrix stored =
          TRY(sizes_of(weight.name, weight.expert, weight.rows, weight.columns));
      return stored_bytes_of(stored, part.elements());
    }
    const LatentConfig& latent = config_.latent;
    const Range heads = cut_.heads(rank_);
    uint64_t bytes = 0;
    for (int head = heads.begin; head < heads.end; ++head) {
      bytes += stored_bytes(
          TRY(sizes_of(head_part_name(weight, "embed_q"), head, latent.kv_rank, latent.nope)));
      bytes += stored_bytes(
          TRY(sizes_of(head_part_name(weight, "unembed_out"), head, latent.value, latent.kv_rank)));
    }
    return bytes;
  }

  // One row is the smallest request that a source may have to convert.
  Result<StoredMatrix> sizes_of(const std::string& name, int stack_index, int rows,
                                int columns) const {
    return source_.matrix(
        {.name = name, .stack_index = stack_index, .rows = rows, .columns = columns, .row_end = 1});
  }

  Status load_one(const Weight& weight, LayerWeights& place) {
    const WeightPart part = part_of(weight, cut_, rank_);
    const auto role = static_cast<size_t>(weight.role);
    if (weight.is_vector && weight.expert >= 0) {
      TRY(load_expert_vector(weight, part, place.vectors[role]));
    } else if (std::vector<int64_t>* const constants = ngram_constants(weight.role)) {
      TRY(load_constants(weight, *constants));
    } else if (weight.role == Role::kNgramConvolution) {
      place.vectors[role] = TRY(load_convolution(weight, part, config_.ngrams->taps));
    } else if (weight.role == Role::kDeltaConvolution) {
      TRY(load_convolutions(weight, place));
    } else if (const auto block = convolution_block(weight.role)) {
      place.delta_convolutions[*block] = TRY(load_convolution(weight, part, config_.delta->taps));
    } else if (weight.role == Role::kDeltaInput) {
      TRY(load_delta_inputs(weight, part, place));
    } else if (weight.role == Role::kRouterTable) {
      place.vectors[role] = TRY(load_router_table(weight, part));
    } else if (weight.is_vector) {
      place.vectors[role] = TRY(load_vector(weight, part));
    } else if (weight.role == Role::kKvUp) {
      TRY(load_heads(weight, part, place));
    } else if (weight.role == Role::kGroupOut) {
      TRY(load_groups(weight, part, place));
    } else if (weight.role == Role::kNgramRows) {
      place.ngram_rows.push_back(TRY(load_matrix(weight, part)));
    } else if (weight.role == Role::kIndexQueryKey) {
      TRY(load_index(weight, part, place));
    } else if (weight.expert >= 0) {
      std::vector<MatrixId>& experts = expert_matrices(weight.role, place.experts);
      const auto first = experts.empty() ? std::nullopt : std::optional(experts.front());
      experts.push_back(TRY(load_matrix(weight, part, first)));
    } else {
      place.matrices[role] = TRY(load_matrix(weight, part));
    }
    return Ok{};
  }

  // The table names experts in ascending order.
  static std::vector<MatrixId>& expert_matrices(Role role, ExpertMatrices& experts) {
    if (role == Role::kExpertGate) return experts.gate;
    return role == Role::kExpertUp ? experts.up : experts.down;
  }

  // A rank without a part of the matrix requests one element: an end of 0 would mean all.
  Result<StoredMatrix> find(const Weight& weight, const WeightPart& part) const {
    const bool is_empty = part.elements() == 0;
    const Range rows = is_empty ? Range{0, 1} : part.rows;
    const Range columns = is_empty ? Range{0, 1} : part.columns;
    return source_.matrix({.name = weight.name,
                           .stack_index = weight.expert,
                           .rows = weight.rows,
                           .columns = weight.columns,
                           .row_begin = rows.begin,
                           .row_end = rows.end,
                           .column_begin = columns.begin,
                           .column_end = columns.end});
  }

  void count(const Weight& weight, uint64_t bytes) {
    const bool is_head = config_.tied_embeddings && has_head();
    weights_.weight_bytes += bytes;
    weights_.read_bytes += bytes;
    if (weight.expert >= 0) {
      expert_bytes_ += bytes;
    } else {
      weights_.token_bytes += is_looked_up(weight.role, is_head) ? 0 : bytes;
    }
    if (progress_ == nullptr) return;
    progress_->read_bytes.store(weights_.weight_bytes, std::memory_order_relaxed);
  }

  // The router's input is normed, and then divided by the root of its length; a layer's own input
  // is the sum of two parts, divided by the root of two.
  float factor_of(Role role) const {
    if (role == Role::kLayerProjectionNorm) return std::sqrt(0.5f);
    return role == Role::kRouterNorm ? 1.0f / std::sqrt(static_cast<float>(config_.hidden)) : 1.0f;
  }

  Result<std::vector<float>> read_vector(const Weight& weight, const WeightPart& part) {
    const StoredVector stored = TRY(source_.vector(weight.name, weight.expert, weight.rows));
    TRY(need(weight.name, stored.bytes));
    const auto size = static_cast<size_t>(part.rows.size());
    std::vector<float> values(size);
    const float factor = factor_of(weight.role);
    for (size_t i = 0; i < size; ++i) {
      const size_t at = static_cast<size_t>(part.rows.begin) + i;
      values[i] = factor * load_element(stored.bytes.data(), stored.dtype, at);
    }
    count(weight, size * dtype_bytes(stored.dtype));
    change(weight, stored.is_minus_exponential, values);
    return values;
  }

  // From what is stored to what is computed with.
  void change(const Weight& weight, bool is_minus_exponential, std::vector<float>& values) const {
    const Role role = weight.role;
    if (role == Role::kDeltaDecayRate) {
      for (float& value : values) value = is_minus_exponential ? -value : exp_f32(value);
      values = repeated(values, config_.delta->decays());
    }
    const bool adds = weight.layer < config_.layers ? adds_to_norms_ : adds_to_draft_norms_;
    if (adds && is_lowered(role)) {
      for (float& value : values) value += 1.0f;
    }
    // All that follows is the mean over the streams.
    if (is_norm_of_streams(role)) {
      for (float& value : values) value /= static_cast<float>(config_.streams.count);
    }
  }

  // Where a rank's rows of queries, of keys and of values begin and end.
  std::array<Range, 3> delta_rows() const {
    const DeltaConfig& delta = *config_.delta;
    const Range heads = cut_.delta_heads(rank_);
    const int keys = delta.key_heads * delta.key_dim;
    const int of_values = delta.values_per_key() * delta.value_dim;
    const auto rows = [&](int first, int of_head) {
      return Range{first + heads.begin * of_head, first + heads.end * of_head};
    };
    return {rows(0, delta.key_dim), rows(keys, delta.key_dim), rows(2 * keys, of_values)};
  }

  Status load_delta_inputs(const Weight& weight, const WeightPart& part, LayerWeights& place) {
    const std::array<Range, 3> rows = delta_rows();
    uint64_t bytes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const WeightPart own{rows[i], part.columns};
      const StoredMatrix stored = TRY(find(weight, own));
      place.delta_inputs[i] = TRY(pack_rows(weight, stored, own.rows));
      bytes += stored_bytes_of(stored, own.elements());
      give_back(stored);
    }
    count(weight, bytes);
    return Ok{};
  }

  Status load_convolutions(const Weight& weight, LayerWeights& place) {
    const int taps = config_.delta->taps;
    const std::array<Range, 3> rows = delta_rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      const WeightPart part{{rows[i].begin * taps, rows[i].end * taps}, {0, 1}};
      place.delta_convolutions[i] = TRY(load_convolution(weight, part, taps));
    }
    return Ok{};
  }

  // Stored by channel: (channels, 1, taps), or (channels, taps, 1) by MLX.
  Result<Slice> load_convolution(const Weight& weight, const WeightPart& part, int taps_count) {
    const auto taps = static_cast<size_t>(taps_count);
    const std::vector<int64_t> shape = source_.shape_of(weight.name);
    if (!shape.empty() && shape.front() != weight.rows / taps_count) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the tensor {} begins with {} channels where {} are expected",
                               weight.name, shape.front(), weight.rows / taps_count)};
    }
    const std::vector<float> stored = TRY(read_vector(weight, part));
    const size_t channels = stored.size() / taps;
    std::vector<float> values(stored.size());
    for (size_t at = 0; at < values.size(); ++at) {
      values[at] = stored[at % channels * taps + at / channels];
    }
    return store_vector(values);
  }

  Result<Slice> load_vector(const Weight& weight, const WeightPart& part) {
    return store_vector(TRY(read_vector(weight, part)));
  }

  Result<Slice> store_vector(const std::vector<float>& values) {
    const Slice slice{TRY(device_.allocate(values.size() * sizeof(float), Access::kDevice)), 0};
    device_.write(slice, std::as_bytes(std::span<const float>(values)));
    return slice;
  }

  // One buffer holds the vectors of all experts: (experts, part).
  Status load_expert_vector(const Weight& weight, const WeightPart& part, Slice& all) {
    const std::vector<float> values = TRY(read_vector(weight, part));
    if (weight.expert == 0) {
      const size_t elements = values.size() * static_cast<size_t>(config_.experts.count);
      all = {TRY(device_.allocate(elements * sizeof(float), Access::kDevice)), 0};
    }
    const size_t offset = all.offset + values.size() * static_cast<size_t>(weight.expert);
    device_.write({all.buffer, offset}, std::as_bytes(std::span<const float>(values)));
    return Ok{};
  }

  // `input_like` as in MatrixSource.
  Result<MatrixId> load_matrix(const Weight& weight, const WeightPart& part,
                               std::optional<MatrixId> input_like = std::nullopt) {
    const StoredMatrix stored = TRY(find(weight, part));
    const bool is_empty = part.elements() == 0;
    const MatrixId id = TRY(pack(weight.name, {.stored = stored,
                                               .row_begin = part.rows.begin,
                                               .rows = is_empty ? 0 : part.rows.size(),
                                               .column_begin = part.columns.begin,
                                               .columns = part.columns.size(),
                                               .steps = steps_of(weight, part),
                                               .input_like = input_like,
                                               .inputs_per_token = inputs_of(weight)}));
    count(weight, stored_bytes_of(stored, part.elements()));
    give_back(stored);
    return id;
  }

  int inputs_of(const Weight& weight) const {
    return weight.expert < 0 ? 1 : config_.experts.chosen;
  }

  Status need(const std::string& name, std::span<const std::byte> bytes) const {
    const Status is_here = source_.need(bytes);
    if (is_here.ok()) return is_here;
    return Error{is_here.error().code, name + ": " + is_here.error().message};
  }

  Result<MatrixId> pack(const std::string& name, const MatrixSource& source) {
    const MatrixPart part{.row_begin = source.row_begin,
                          .rows = source.rows,
                          .column_begin = source.column_begin,
                          .columns = source.columns};
    for (const auto& bytes : stored_ranges(source.stored, part)) TRY(need(name, bytes));
    auto id = device_.pack(source);
    if (!id.ok()) return Error{id.error().code, name + ": " + id.error().message};
    return id;
  }

  // Some rows of a matrix as one by itself.
  Result<MatrixId> pack_rows(const Weight& weight, const StoredMatrix& stored, Range rows) {
    return pack(weight.name, {.stored = stored,
                              .row_begin = rows.begin,
                              .rows = rows.size(),
                              .columns = weight.columns,
                              .steps = one_leaf(weight.columns)});
  }

  // Each head has a matrix that maps its query to the latent's space and one that maps the latent
  // to its value. Both multiply the results of other matrices and are small: their activations are
  // not rounded a second time. They are stored like that, or in one matrix with the first one
  // transposed: a head's rows for its key, then those for its value.
  Status load_heads(const Weight& weight, const WeightPart& part, LayerWeights& place) {
    const LatentConfig& latent = config_.latent;
    const int rows_of_head = latent.nope + latent.value;
    if (has_split_heads(source_, weight)) return load_absorbed_heads(weight, place);
    const StoredMatrix stored = TRY(find(weight, part));
    for (int row = part.rows.begin; row < part.rows.end; row += rows_of_head) {
      place.absorb.push_back(TRY(pack(weight.name, {.stored = stored,
                                                    .row_begin = row,
                                                    .rows = latent.nope,
                                                    .columns = latent.kv_rank,
                                                    .is_transposed = true,
                                                    .steps = one_leaf(latent.nope),
                                                    .keeps_float_input = true})));
      place.values.push_back(TRY(pack(weight.name, {.stored = stored,
                                                    .row_begin = row + latent.nope,
                                                    .rows = latent.value,
                                                    .columns = latent.kv_rank,
                                                    .steps = one_leaf(latent.kv_rank),
                                                    .keeps_float_input = true})));
    }
    count(weight, stored_bytes_of(stored, part.elements()));
    give_back(stored);
    return Ok{};
  }

  Status load_absorbed_heads(const Weight& weight, LayerWeights& place) {
    const LatentConfig& latent = config_.latent;
    const Range heads = cut_.heads(rank_);
    const auto load = [&](const char* name, int head, int rows, int columns) -> Result<MatrixId> {
      const std::string full = head_part_name(weight, name);
      const StoredMatrix stored = TRY(
          source_.matrix({.name = full, .stack_index = head, .rows = rows, .columns = columns}));
      count(weight, stored_bytes(stored));
      const MatrixSource source{.stored = stored,
                                .rows = rows,
                                .columns = columns,
                                .steps = one_leaf(columns),
                                .keeps_float_input = true};
      return pack(full, source);
    };
    for (int head = heads.begin; head < heads.end; ++head) {
      place.absorb.push_back(TRY(load("embed_q", head, latent.kv_rank, latent.nope)));
      place.values.push_back(TRY(load("unembed_out", head, latent.value, latent.kv_rank)));
    }
    return Ok{};
  }

  Status load_groups(const Weight& weight, const WeightPart& part, LayerWeights& place) {
    const StoredMatrix stored = TRY(find(weight, part));
    const int rows = config_.compressed->group_rank;
    for (int row = part.rows.begin; row < part.rows.end; row += rows) {
      place.groups.push_back(TRY(pack_rows(weight, stored, {row, row + rows})));
    }
    count(weight, stored_bytes_of(stored, part.elements()));
    give_back(stored);
    return Ok{};
  }

  // The queries of an index and then its key, of which the latter is needed for every token.
  Status load_index(const Weight& weight, const WeightPart& part, LayerWeights& place) {
    const StoredMatrix stored = TRY(find(weight, part));
    const int queries = config_.indexer.heads * config_.indexer.head_dim;
    place.matrices[static_cast<size_t>(Role::kIndexQuery)] =
        TRY(pack_rows(weight, stored, {0, queries}));
    place.matrices[static_cast<size_t>(Role::kIndexKey)] =
        TRY(pack_rows(weight, stored, {queries, weight.rows}));
    count(weight, stored_bytes_of(stored, part.elements()));
    give_back(stored);
    return Ok{};
  }

  std::vector<int64_t>* ngram_constants(Role role) {
    if (role == Role::kNgramMultipliers) return &weights_.ngrams.multipliers;
    if (role == Role::kNgramHeadRows) return &weights_.ngrams.rows;
    return role == Role::kNgramOffsets ? &weights_.ngrams.offsets : nullptr;
  }

  // Checkpoints store integers; those of a shape are the published ones.
  Status load_constants(const Weight& weight, std::vector<int64_t>& values) {
    const StoredVector stored = TRY(source_.vector(weight.name, weight.expert, weight.rows));
    TRY(need(weight.name, stored.bytes));
    count(weight, stored.bytes.size());
    if (stored.dtype != DType::kI64) return Ok{};
    values.clear();
    for (size_t i = 0; i < static_cast<size_t>(weight.rows); ++i) {
      values.push_back(load_number<int64_t>(stored.bytes.data(), i));
    }
    return Ok{};
  }

  // Each token's experts in ascending order, as floats.
  Result<Slice> load_router_table(const Weight& weight, const WeightPart& part) {
    std::vector<float> experts = TRY(read_vector(weight, part));
    const auto chosen = static_cast<size_t>(config_.experts.chosen);
    const auto count = static_cast<float>(config_.experts.count);
    for (size_t at = 0; at < experts.size(); at += chosen) {
      const std::span<float> own = std::span(experts).subspan(at, chosen);
      const bool are_experts = std::all_of(own.begin(), own.end(), [&](float expert) {
        return expert >= 0 && expert < count && expert == std::trunc(expert);  // not a NaN
      });
      if (are_experts) {
        std::sort(own.begin(), own.end());
        continue;
      }
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the tensor {} gives token {} an expert that is not one of the {}",
                               weight.name, at / chosen, config_.experts.count)};
    }
    return store_vector(experts);
  }

  static std::vector<LeafStep> one_leaf(int columns) {
    return {{.columns = columns, .merges = 0, .ends_subtree = 1}};
  }

  std::vector<LeafStep> steps_of(const Weight& weight, const WeightPart& part) const {
    if (weight.split == Split::kHeadColumns) {
      return cut_.head_steps(rank_, weight.columns / cut_.head_count());
    }
    if (weight.split == Split::kDeltaColumns) {
      return cut_.delta_steps(rank_, weight.columns / cut_.delta_head_count());
    }
    if (weight.split == Split::kFfnColumns) return cut_.ffn_steps(rank_, weight.columns);
    if (weight.split == Split::kExpertFfnColumns) return cut_.expert_steps(rank_);
    if (weight.split == Split::kSharedFfnColumns) return cut_.shared_steps(rank_);
    return one_leaf(part.columns.size());
  }

  const WeightSource& source_;
  const ModelConfig& config_;
  const Range layers_;
  const Cut& cut_;
  int rank_;
  Device& device_;
  Progress* const progress_;
  Weights weights_;
  uint64_t expert_bytes_ = 0;
  bool adds_to_norms_ = false;  // their weights are stored less 1
  bool adds_to_draft_norms_ = false;
};

}  // namespace

bool is_loaded(const Weight& weight, const ModelConfig& config, Range layers) {
  if (weight.layer >= 0) {
    return weight.layer >= layers.begin && weight.layer < config.end_with_draft(layers.end);
  }
  const bool has_embedding = layers.begin == 0, has_head = layers.end == config.layers;
  if (makes_layer_inputs(weight.role)) return has_embedding;
  if (weight.role != Role::kEmbedding) return has_head;
  const bool embeds_drafts = has_head && config.has_draft_layer();
  return has_embedding || embeds_drafts || (has_head && config.tied_embeddings);
}

Result<Weights> load_weights(const LoadContext& context) {
  return Loader(context).load();
}

bool lowers_norms(const WeightSource& source, const ModelConfig& config) {
  return adds_to_norms(source, config, weight_table(config));
}

Result<uint64_t> share_bytes(const LoadContext& context) {
  return Loader(context).whole_bytes();
}

Result<uint64_t> load_weight(const LoadContext& context, const Weight& weight,
                             LayerWeights& place) {
  return Loader(context).load_alone(weight, place);
}

}  // namespace lockstep
