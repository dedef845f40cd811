#include "model/config/full_attention_config.h"

#include <string>

#include "model/config/config_fields.h"

namespace lockstep {
namespace {

// The angles of one kind of layer.
struct LayerRope {
  double theta = 0;
  double part = 1;  // of the pairs that turn
};

Result<LayerRope> read_layer_rope(const Json& file, const char* kind, std::string_view type) {
  const Json* all = find(file, "rope_parameters");
  const Json* own = all && all->is_object() ? find(*all, kind) : nullptr;
  if (!own || !own->is_object()) {
    return corrupt(fmt::format("\"rope_parameters\" has no \"{}\"", kind));
  }
  const std::string has = TRY(get_string(*own, "rope_type")).value_or("default");
  if (has != "default" && has != type) {
    return unsupported(
        fmt::format("the rope type \"{:.100}\" of \"{}\" is unknown here; known are "
                    "default and proportional",
                    has, kind));
  }
  LayerRope rope;
  rope.theta = TRY(positive(*own, "rope_theta", std::nullopt));
  rope.part = TRY(positive(*own, "partial_rotary_factor", 1.0));
  if (rope.part > 1 || (has == "default" && rope.part != 1)) {
    return unsupported(fmt::format(
        "\"partial_rotary_factor\" is {} in \"{}\", which is not supported", rope.part, kind));
  }
  return rope;
}

Status read_layer_inputs(const Json& file, ModelConfig& config) {
  const int64_t size = TRY(get_int(file, "hidden_size_per_layer_input")).value_or(0);
  if (size < 0 || size > kSizeMax || size * config.layers + config.hidden > kSizeMax) {
    return corrupt(fmt::format("\"hidden_size_per_layer_input\" is {}, which is invalid", size));
  }
  if (size == 0) return Ok{};
  const int tokens = TRY(size_or(file, "vocab_size_per_layer_input", config.vocab_size));
  if (tokens != config.vocab_size) {
    return unsupported(fmt::format(
        "\"vocab_size_per_layer_input\" is {}, only the \"vocab_size\" of {} is supported", tokens,
        config.vocab_size));
  }
  config.layer_input = static_cast<int>(size);
  return Ok{};
}

// The last layer before `end` with as much to attend to as `layer`; -1: there is none.
int last_alike(const ModelConfig& config, int layer, int end) {
  int found = end - 1;
  while (found >= 0 && config.layer(found).window != config.layer(layer).window) --found;
  return found;
}

Status share_states(int first, ModelConfig& config) {
  for (int layer = first; layer < config.layers; ++layer) {
    const int from = last_alike(config, layer, first);
    if (from < 0) {
      return corrupt(fmt::format(
          "\"num_kv_shared_layers\" is {}, but no layer before these has keys and values "
          "for layer {}",
          config.layers - first, layer));
    }
    config.traits[static_cast<size_t>(layer)].state_layer = from;
  }
  return Ok{};
}

Status widen(const Json& file, int first, ModelConfig& config) {
  if (!TRY(get_bool(file, "use_double_wide_mlp")).value_or(false)) return Ok{};
  for (int layer = first; layer < config.layers; ++layer) {
    LayerTraits& traits = config.traits[static_cast<size_t>(layer)];
    if (traits.has_experts || 2 * int64_t{config.ffn} > kSizeMax) {
      return unsupported("\"use_double_wide_mlp\": true is not supported for these layers");
    }
    traits.ffn = 2 * config.ffn;
  }
  return Ok{};
}

}  // namespace

Status read_full_attention(const Json& file, ModelConfig& config) {
  FullAttention full;
  full.head_dim = TRY(size_or(file, "global_head_dim", config.head_dim, kHeadDimMax));
  full.values_are_keys = TRY(get_bool(file, "attention_k_eq_v")).value_or(false);
  const auto heads = TRY(get_int(file, "num_global_key_value_heads"));
  full.kv_heads = config.kv_heads;
  if (full.values_are_keys && heads) {
    full.kv_heads = TRY(size_or(file, "num_global_key_value_heads", std::nullopt));
  }
  if (full.head_dim % 2 != 0) {
    return corrupt(fmt::format("\"global_head_dim\" is {}, it must be even", full.head_dim));
  }
  if (config.kv_heads % full.kv_heads != 0) {
    return unsupported(
        fmt::format("{} key/value heads of layers without a window do not divide the "
                    "{} of the others, which is not supported",
                    full.kv_heads, config.kv_heads));
  }
  const LayerRope windowed = TRY(read_layer_rope(file, "sliding_attention", "default"));
  const LayerRope rope = TRY(read_layer_rope(file, "full_attention", "proportional"));
  config.rope_theta = windowed.theta;
  full.rope_theta = rope.theta;
  full.turning_pairs = static_cast<int>(full.head_dim / 2 * rope.part);
  config.full = full;
  return Ok{};
}

Status read_layer_differences(const Json& file, ModelConfig& config) {
  TRY(read_layer_inputs(file, config));
  const int64_t shared = TRY(get_int(file, "num_kv_shared_layers")).value_or(0);
  if (shared < 0 || shared >= config.layers) {
    return corrupt(
        fmt::format("\"num_kv_shared_layers\" is {}, there are {} layers", shared, config.layers));
  }
  const int first = config.layers - static_cast<int>(shared);
  TRY(share_states(first, config));
  return widen(file, first, config);
}

}  // namespace lockstep
