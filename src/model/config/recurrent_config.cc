#include "model/config/recurrent_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/config_fields.h"

namespace lockstep {
namespace {

// Published models have 4.
constexpr int64_t kTapsMax = 8;

Result<DeltaConfig> read_delta(const Json& file) {
  DeltaConfig delta;
  delta.key_heads = TRY(size_or(file, "linear_num_key_heads", std::nullopt, kDeltaHeadsMax));
  delta.value_heads = TRY(size_or(file, "linear_num_value_heads", std::nullopt, kDeltaHeadsMax));
  delta.key_dim = TRY(size_or(file, "linear_key_head_dim", std::nullopt, kHeadDimMax));
  delta.value_dim = TRY(size_or(file, "linear_value_head_dim", std::nullopt, kHeadDimMax));
  delta.taps = TRY(size_or(file, "linear_conv_kernel_dim", std::nullopt, kTapsMax));
  const std::string gate = TRY(get_string(file, "output_gate_type")).value_or("swish");
  if (gate != "swish" && gate != "silu" && gate != "sigmoid") {
    return unsupported(fmt::format(
        "\"output_gate_type\": \"{:.100}\" is not supported, only swish, silu and sigmoid are",
        gate));
  }
  delta.gates_by_sigmoid = gate == "sigmoid";
  if (delta.value_heads % delta.key_heads != 0) {
    return corrupt(fmt::format("{} value heads cannot share {} key heads evenly", delta.value_heads,
                               delta.key_heads));
  }
  return delta;
}

// Kimi Linear and GLM-5.3 have them in an object.
Result<DeltaConfig> read_channel_delta(const Json& linear) {
  DeltaConfig delta{.decays_channels = true, .gates_by_sigmoid = true};
  delta.key_heads = TRY(size_or(linear, "num_heads", std::nullopt, kDeltaHeadsMax));
  delta.key_dim = TRY(size_or(linear, "head_dim", std::nullopt, kHeadDimMax));
  delta.taps = TRY(size_or(linear, "short_conv_kernel_size", std::nullopt, kTapsMax));
  delta.value_heads = delta.key_heads;
  delta.value_dim = delta.low_rank = delta.key_dim;
  delta.least_decay = static_cast<float>(TRY(get_double(linear, "gate_lower_bound")).value_or(0));
  if (delta.least_decay <= 0 && std::isfinite(delta.least_decay)) return delta;
  return corrupt(fmt::format("\"gate_lower_bound\" is {}, it must be negative", delta.least_decay));
}

// Kimi Linear's lists count from 1.
Status read_listed_layers(const Json& linear, ModelConfig& config) {
  std::vector<int> listed(config.traits.size(), 0);
  for (const char* key : {"kda_layers", "full_attn_layers"}) {
    const Json* layers = find(linear, key);
    if (!layers || !layers->is_array()) {
      return corrupt(fmt::format("\"{}\" must be an array of layers", key));
    }
    const bool is_recurrent = std::string_view(key) == "kda_layers";
    for (const Json& number : layers->get_array()) {
      const auto layer = number_of<int64_t>(number);
      if (!layer || *layer < 1 || *layer > config.layers) {
        return corrupt(fmt::format("\"{}\" names a layer that does not exist", key));
      }
      const auto index = static_cast<size_t>(*layer - 1);
      ++listed[index];
      if (is_recurrent) config.traits[index].mixer = config.architecture->recurrent.mixer;
    }
  }
  if (std::all_of(listed.begin(), listed.end(), [](int times) { return times == 1; })) return Ok{};
  return corrupt("\"kda_layers\" and \"full_attn_layers\" must name each layer once");
}

// Without "layer_types" every n-th layer has attention.
Status read_mixers(const Json& file, std::string_view attention, ModelConfig& config) {
  const LayerTypes types{"layer_types", "layer", attention, "linear_attention"};
  const auto are_recurrent = TRY(read_layer_types(file, types, config.traits.size()));
  const auto interval = static_cast<size_t>(TRY(size_or(file, "full_attention_interval", 4)));
  for (size_t layer = 0; layer < config.traits.size(); ++layer) {
    const bool is_recurrent =
        are_recurrent.empty() ? (layer + 1) % interval != 0 : are_recurrent[layer];
    if (is_recurrent) config.traits[layer].mixer = config.architecture->recurrent.mixer;
  }
  return Ok{};
}

}  // namespace

Status read_recurrent(const Json& file, ModelConfig& config) {
  if (config.architecture->recurrent.weights.empty()) return Ok{};
  if (config.architecture->decays_channels) {
    const Json* linear = find(file, "linear_attn_config");
    if (!linear || !linear->is_object()) return corrupt("\"linear_attn_config\" is missing");
    config.delta = TRY(read_channel_delta(*linear));
    if (config.architecture->has_indexer) {
      TRY(read_mixers(file, "deepseek_sparse_attention", config));
    } else {
      TRY(read_listed_layers(*linear, config));
    }
    config.rotates_nothing = true;
  } else {
    config.delta = TRY(read_delta(file));
    TRY(read_mixers(file, "full_attention", config));
  }
  const bool has_attention =
      std::any_of(config.traits.begin(), config.traits.end(),
                  [](const LayerTraits& layer) { return !layer.is_recurrent(); });
  if (has_attention) return Ok{};
  return unsupported("no layer has full attention, which is not supported");
}

}  // namespace lockstep
