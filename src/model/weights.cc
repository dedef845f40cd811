#include "model/weights.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <string>

#include "tensor/half.h"

namespace lockstep {
namespace {

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const ModelConfig& config, const Cut& cut, int rank,
         Device& device)
      : checkpoint_(checkpoint), config_(config), cut_(cut), rank_(rank), device_(device) {}

  Result<Weights> load() {
    weights_.layers.resize(static_cast<size_t>(config_.layers));
    for (const Weight& weight : weight_table(config_)) TRY(load_one(weight));
    if (config_.experts.count > 0) {
      weights_.token_bytes += expert_bytes_ / static_cast<uint64_t>(config_.experts.count) *
                              static_cast<uint64_t>(config_.experts.chosen);
    }
    if (config_.tied_embeddings) {
      auto& matrices = weights_.shared.matrices;
      matrices[static_cast<size_t>(Role::kLogits)] = weights_.shared.matrix(Role::kEmbedding);
    }
    return std::move(weights_);
  }

 private:
  Status load_one(const Weight& weight) {
    const TensorView& tensor = *TRY(checkpoint_.tensor(weight.name));
    TRY(check_shape(weight, tensor));
    const WeightPart part = part_of(weight, cut_, rank_);
    const uint64_t bytes = part.elements() * dtype_bytes(tensor.dtype);
    const bool is_looked_up = weight.role == Role::kEmbedding && !config_.tied_embeddings;
    weights_.weight_bytes += bytes;
    if (weight.expert >= 0) {
      expert_bytes_ += bytes;
    } else {
      weights_.token_bytes += is_looked_up ? 0 : bytes;
    }
    LayerWeights& place =
        weight.layer < 0 ? weights_.shared : weights_.layers[static_cast<size_t>(weight.layer)];
    const auto role = static_cast<size_t>(weight.role);
    if (weight.is_vector) {
      place.vectors[role] = TRY(load_vector(part, tensor));
    } else if (weight.role == Role::kKvUp) {
      TRY(load_heads(weight, part, tensor, place));
    } else if (weight.expert >= 0) {
      expert_matrices(weight.role, place.experts).push_back(TRY(load_matrix(weight, part, tensor)));
    } else {
      place.matrices[role] = TRY(load_matrix(weight, part, tensor));
    }
    return Ok{};
  }

  // The table names experts in ascending order.
  static std::vector<MatrixId>& expert_matrices(Role role, ExpertMatrices& experts) {
    if (role == Role::kExpertGate) return experts.gate;
    return role == Role::kExpertUp ? experts.up : experts.down;
  }

  static Status check_shape(const Weight& weight, const TensorView& tensor) {
    const std::vector<int64_t> expected = weight.is_vector
                                              ? std::vector<int64_t>{weight.rows}
                                              : std::vector<int64_t>{weight.rows, weight.columns};
    if (tensor.shape == expected) return Ok{};
    return Error{ErrorCode::kCorrupt,
                 fmt::format("tensor {} has the shape [{}], config.json asks for [{}]", weight.name,
                             fmt::join(tensor.shape, ", "), fmt::join(expected, ", "))};
  }

  Result<Slice> load_vector(const WeightPart& part, const TensorView& tensor) {
    const auto count = static_cast<size_t>(part.rows.size());
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t at = static_cast<size_t>(part.rows.begin) + i;
      values[i] = load_element(tensor.bytes.data(), tensor.dtype, at);
    }
    weights_.read_bytes += count * dtype_bytes(tensor.dtype);
    const Slice slice{TRY(device_.allocate(count * sizeof(float), Access::kDevice)), 0};
    device_.write(slice, std::as_bytes(std::span<const float>(values)));
    return slice;
  }

  Result<MatrixId> load_matrix(const Weight& weight, const WeightPart& part,
                               const TensorView& tensor) {
    const size_t element = dtype_bytes(tensor.dtype);
    const auto columns = static_cast<size_t>(weight.columns);
    const size_t first =
        static_cast<size_t>(part.rows.begin) * columns + static_cast<size_t>(part.columns.begin);
    MatrixSource source{.dtype = tensor.dtype,
                        .rows = part.rows.size(),
                        .columns = part.columns.size(),
                        .data = tensor.bytes.data() + first * element,
                        .row_bytes = columns * element,
                        .steps = steps_of(weight, part)};
    if (part.elements() == 0) source.rows = 0;
    const MatrixId id = TRY(device_.pack(source));
    weights_.read_bytes += part.elements() * element;
    return id;
  }

  // Each head has rows for its key, which are used transposed on the query, then rows for its
  // value.
  Status load_heads(const Weight& weight, const WeightPart& part, const TensorView& tensor,
                    LayerWeights& place) {
    const LatentConfig& latent = *config_.latent;
    const size_t element = dtype_bytes(tensor.dtype);
    const size_t row_bytes = static_cast<size_t>(weight.columns) * element;
    const int rows_of_head = latent.nope + latent.value;
    for (int row = part.rows.begin; row < part.rows.end; row += rows_of_head) {
      const std::byte* head = tensor.bytes.data() + static_cast<size_t>(row) * row_bytes;
      place.absorb.push_back(TRY(device_.pack({.dtype = tensor.dtype,
                                               .rows = latent.kv_rank,
                                               .columns = latent.nope,
                                               .data = head,
                                               .row_bytes = element,
                                               .column_bytes = row_bytes,
                                               .steps = {{latent.nope, 0, 1}}})));
      place.values.push_back(
          TRY(device_.pack({.dtype = tensor.dtype,
                            .rows = latent.value,
                            .columns = latent.kv_rank,
                            .data = head + static_cast<size_t>(latent.nope) * row_bytes,
                            .row_bytes = row_bytes,
                            .steps = {{latent.kv_rank, 0, 1}}})));
    }
    weights_.read_bytes += part.elements() * element;
    return Ok{};
  }

  std::vector<LeafStep> steps_of(const Weight& weight, const WeightPart& part) const {
    if (weight.split == Split::kHeadColumns) return cut_.head_steps(rank_);
    if (weight.split == Split::kFfnColumns) return cut_.ffn_steps(rank_);
    if (weight.split == Split::kExpertFfnColumns) return cut_.expert_steps(rank_);
    if (weight.split == Split::kSharedFfnColumns) return cut_.shared_steps(rank_);
    return {{.columns = part.columns.size(), .merges = 0, .ends_subtree = 1}};
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Cut& cut_;
  int rank_;
  Device& device_;
  Weights weights_;
  uint64_t expert_bytes_ = 0;
};

}  // namespace

Result<Weights> load_weights(const Checkpoint& checkpoint, const ModelConfig& config,
                             const Cut& cut, int rank, Device& device) {
  return Loader(checkpoint, config, cut, rank, device).load();
}

}  // namespace lockstep
