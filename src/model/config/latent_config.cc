#include "model/config/latent_config.h"

#include "model/config/config_fields.h"

namespace lockstep {

Status read_latent(const Json& file, ModelConfig& config) {
  if (config.architecture->dense.mixer != Mixer::kLatentAttention) return Ok{};
  if (config.heads > kLatentHeadsMax) {
    return unsupported(fmt::format("{} heads of latent attention are not supported, at most {} are",
                                   config.heads, kLatentHeadsMax));
  }
  LatentConfig& latent = config.latent;
  const Json* rank = find(file, "q_lora_rank");
  if (rank && !rank->is_null()) latent.query_rank = TRY(size_or(file, "q_lora_rank", std::nullopt));
  latent.kv_rank = TRY(size_or(file, "kv_lora_rank", std::nullopt));
  latent.nope = TRY(size_or(file, "qk_nope_head_dim", std::nullopt));
  latent.rope = TRY(size_or(file, "qk_rope_head_dim", std::nullopt));
  latent.value = TRY(size_or(file, "v_head_dim", std::nullopt));
  if (latent.rope % 2 != 0) {
    return corrupt(fmt::format("\"qk_rope_head_dim\" is {}, it must be even", latent.rope));
  }
  const float own_epsilon = config.architecture->latent_norm_epsilon;
  latent.norm_epsilon = own_epsilon > 0 ? own_epsilon : config.norm_epsilon;
  config.head_dim = latent.nope + latent.rope;
  config.value_dim = latent.value;
  config.kv_heads = config.heads;  // every head computes its own keys and values from the latent
  return Ok{};
}

}  // namespace lockstep
