#include "model/config/gguf_compressed.h"

#include <string_view>

namespace lockstep {
namespace {

struct Pair {
  std::string_view hugging_face;
  std::string_view gguf;
};
constexpr Pair kIntegers[] = {
    {"num_key_value_heads", "attention.head_count_kv"},
    {"head_dim", "attention.key_length"},
    {"q_lora_rank", "attention.q_lora_rank"},
    {"qk_rope_head_dim", "rope.dimension_count"},
    {"sliding_window", "attention.sliding_window"},
    {"o_groups", "attention.output_group_count"},
    {"o_lora_rank", "attention.output_lora_rank"},
    {"index_n_heads", "attention.indexer.head_count"},
    {"index_head_dim", "attention.indexer.key_length"},
    {"index_topk", "attention.indexer.top_k"},
    {"num_hash_layers", "hash_layer_count"},
    {"hc_mult", "hyper_connection.count"},
    {"hc_sinkhorn_iters", "hyper_connection.sinkhorn_iterations"},
};
constexpr Pair kNumbers[] = {
    {"compress_rope_theta", "attention.compress_rope_freq_base"},
    {"hc_eps", "hyper_connection.epsilon"},
    {"swiglu_limit", "swiglu_clamp_exp"},
};

}  // namespace

Status write_gguf_compressed(const GgufFields& fields, int64_t layers, JsonObject& json) {
  for (const Pair& pair : kIntegers) {
    json[pair.hugging_face] = TRY(fields.required_integer(pair.gguf));
  }
  for (const Pair& pair : kNumbers) {
    const auto value = TRY(fields.number_of_all(pair.gguf));
    if (!value) return fields.missing(pair.gguf);
    json[pair.hugging_face] = *value;
  }
  JsonArray pools;
  for (const int64_t pool :
       TRY(fields.of_layers("attention.compress_ratios", static_cast<size_t>(layers)))) {
    pools.push_back(pool);
  }
  json["compress_ratios"] = std::move(pools);
  return Ok{};
}

}  // namespace lockstep
