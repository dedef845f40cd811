#include "model/config/experts_config.h"

#include <cmath>
#include <initializer_list>
#include <string>

#include "model/config/config_fields.h"

namespace lockstep {
namespace {

// The first of `keys` that is present: the architecture's own name comes first, then names that
// other programs write as well or instead.
Result<int> first_of(const Json& file, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Json* value = find(file, key);
    if (value && !value->is_null()) return size_or(file, key, std::nullopt, kLayerExpertsMax);
  }
  return size_or(file, *keys.begin(), std::nullopt, kLayerExpertsMax);
}

Result<int> read_count(const Json& file, const LayerKind& kind) {
  if (kind.gating == Gating::kClampedSwiglu) {
    return first_of(file, {"num_local_experts", "num_experts", "n_routed_experts"});
  }
  if (kind.scores == RouterForm::kSoftmax) {
    return first_of(file, {"num_experts", "num_local_experts", "n_routed_experts"});
  }
  return first_of(file, {"n_routed_experts", "num_local_experts", "num_experts"});
}

Result<bool> has_experts(const Json& file, const Architecture& architecture) {
  if (architecture.sparse.feed_forward == FeedForward::kDense) return false;
  if (architecture.experts_flag.empty()) return true;
  return TRY(get_bool(file, architecture.experts_flag)).value_or(false);
}

Result<int> count_or_none(const Json& file, std::string_view key) {
  const int64_t count = TRY(get_int(file, key)).value_or(0);
  if (count < 0 || count > kSizeMax) {
    return corrupt(fmt::format("\"{}\" is {}, it must not be negative", key, count));
  }
  return static_cast<int>(count);
}

Status check(const ExpertsConfig& experts, int layers) {
  if (int64_t{experts.count} * layers > kExpertsMax) {
    return corrupt(
        fmt::format("{} experts in each of {} layers are too many, at most {} in all are possible",
                    experts.count, layers, kExpertsMax));
  }
  if (experts.chosen > experts.count || experts.chosen > kChosenExpertsMax) {
    return corrupt(fmt::format("{} experts of {} for a token are too many, at most {} are possible",
                               experts.chosen, experts.count, kChosenExpertsMax));
  }
  if (experts.count % experts.groups != 0 || experts.chosen_groups > experts.groups ||
      experts.count / experts.groups * experts.chosen_groups < experts.chosen) {
    return corrupt(fmt::format("{} experts in {} groups, {} of them chosen, are not possible",
                               experts.count, experts.groups, experts.chosen_groups));
  }
  return Ok{};
}

// GLM 5 names each layer's kind.
Status read_typed_layers(const Json& file, ModelConfig& config) {
  constexpr LayerTypes kTypes{"mlp_layer_types", "layer", "dense", "sparse"};
  const auto have_experts = TRY(read_layer_types(file, kTypes, config.traits.size()));
  for (size_t layer = 0; layer < have_experts.size(); ++layer) {
    config.traits[layer].has_experts = have_experts[layer];
  }
  return Ok{};
}

Status read_layers(const Json& file, ModelConfig& config) {
  const int first = TRY(count_or_none(file, "first_k_dense_replace"));
  const int frequency = TRY(size_or(file, "moe_layer_freq", 1));
  const int sparse_step = TRY(size_or(file, "decoder_sparse_step", 1));
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool is_sparse =
        layer >= first && layer % frequency == 0 && (layer + 1) % sparse_step == 0;
    config.traits[static_cast<size_t>(layer)].has_experts = is_sparse;
  }
  TRY(read_typed_layers(file, config));
  const Json* dense = find(file, "mlp_only_layers");
  if (!dense || dense->is_null()) return Ok{};
  if (!dense->is_array()) return corrupt("\"mlp_only_layers\" must be an array of layers");
  for (const Json& layer : dense->get_array()) {
    if (!layer.is_int64() || layer.get_int64() < 0 || layer.get_int64() >= config.layers) {
      return corrupt("\"mlp_only_layers\" names a layer that does not exist");
    }
    config.traits[static_cast<size_t>(layer.get_int64())].has_experts = false;
  }
  return Ok{};
}

}  // namespace

Status read_experts(const Json& file, ModelConfig& config) {
  const Architecture& architecture = *config.architecture;
  if (!TRY(has_experts(file, architecture))) return Ok{};
  ExpertsConfig& experts = config.experts;
  experts.count = TRY(read_count(file, architecture.sparse));
  experts.chosen = TRY(first_of(file, {"num_experts_per_tok", "experts_per_token",
                                       "num_experts_per_token", "top_k_experts"}));
  const bool is_clamped = architecture.sparse.gating == Gating::kClampedSwiglu;
  experts.ffn = TRY(size_or(file, architecture.expert_width, std::nullopt));
  const bool has_dense_part = !architecture.experts_flag.empty();
  const char* count_key =
      find(file, "num_shared_experts") ? "num_shared_experts" : "n_shared_experts";
  int64_t shared = int64_t{TRY(count_or_none(file, count_key))} * experts.ffn;
  if (architecture.gates_attention) {
    shared = TRY(count_or_none(file, "shared_expert_intermediate_size"));
  }
  if (has_dense_part) shared = config.ffn;
  if (shared > kSizeMax) {
    return corrupt(fmt::format("shared experts of {} columns together are too large", shared));
  }
  experts.shared_ffn = static_cast<int>(shared);
  experts.groups = TRY(size_or(file, "n_group", TRY(size_or(file, "num_expert_group", 1))));
  experts.chosen_groups = TRY(size_or(file, "topk_group", 1));
  // Transformers' defaults differ: false for Qwen3, true for DeepSeek V3 and GLM 4.5.
  const bool normalises =
      architecture.normalises_chosen || architecture.sparse.scores != RouterForm::kSoftmax;
  const bool renormalises = TRY(get_bool(file, "moe_renormalize")).value_or(normalises);
  experts.normalises =
      is_clamped || has_dense_part || TRY(get_bool(file, "norm_topk_prob")).value_or(renormalises);
  experts.factor = static_cast<float>(TRY(positive(file, "routed_scaling_factor", 1.0)));
  TRY(check(experts, config.layers));
  return read_layers(file, config);
}

}  // namespace lockstep
