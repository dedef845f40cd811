// A golden case's config.json as the values of a GGUF file, as llama.cpp's converter writes them.
// Rules: see gguf_conversion.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "support/gguf_deepseek4.h"
#include "support/gguf_gemma_metadata.h"
#include "support/gguf_writer.h"

namespace lockstep::testing {

struct GgufCase {
  const char* name;  // of the golden case
  const char* architecture;
  bool is_interleaved = false;  // query and key heads
  bool splits_latent = false;   // attn_k_b and attn_v_b instead of attn_kv_b
  bool is_gpt_oss = false;
  bool has_post_norm = false;  // post_attention_norm instead of ffn_norm
  bool joins_inputs = false;   // of the delta rule, as older files
  bool is_glm = false;         // under DeepSeek's architecture
  bool lacks_indexer_types = false;
  bool joins_experts = false;  // gate and up in one stack
  bool has_draft = false;      // the layer that predicts a further token
  // To which it is rounded, if not in turn: with others two experts of a token score so nearly
  // alike that activations in 8 bits change the choice.
  std::array<uint32_t, 2> types{};

  bool is_kimi_linear() const { return std::string_view(architecture) == "kimi-linear"; }
  bool is_deepseek4() const { return std::string_view(architecture) == "deepseek4"; }
  bool is_gemma() const { return std::string_view(architecture) == "gemma4"; }
  // Qwen's recurrent models.
  bool has_delta() const {
    const std::string_view name = architecture;
    return name == "qwen3next" || name.starts_with("qwen35");
  }
  bool has_post_attention_norm() const { return has_post_norm || has_delta() || is_gemma(); }
};

struct GgufNamePair {
  std::string_view hugging_face;
  std::string_view gguf;
};
// Integers of config.json that are copied to the file.
inline constexpr GgufNamePair kGgufIntegers[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"head_dim", "attention.key_length"},
    {"head_dim", "attention.value_length"},
    {"n_routed_experts", "expert_count"},
    {"num_experts", "expert_count"},
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"num_experts_per_token", "expert_used_count"},
    {"model_max_length", "context_length"},
    {"num_shared_experts", "expert_shared_count"},
    {"num_expert_group", "expert_group_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"n_shared_experts", "expert_shared_count"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"n_group", "expert_group_count"},
    {"topk_group", "expert_group_used_count"},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
    {"top_k_experts", "expert_used_count"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input"},
    {"index_n_heads", "attention.indexer.head_count"},
    {"index_head_dim", "attention.indexer.key_length"},
    {"index_topk", "attention.indexer.top_k"},
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"full_attention_interval", "full_attention_interval"},
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
};

class GgufMetadataWriter {
 public:
  GgufMetadataWriter(GgufWriter& file, const Json& config, const GgufCase& subject)
      : file_(file), config_(config), case_(subject) {}

  void write() {
    file_.string("general.architecture", case_.architecture);
    for (const GgufNamePair& pair : kGgufIntegers) {
      if (has_other_form(pair.hugging_face)) continue;
      if (const auto value = number(config_, pair.hugging_face)) set(pair.gguf, *value);
    }
    set("block_count", *number(config_, "num_hidden_layers") + (case_.has_draft ? 1 : 0));
    if (case_.has_draft) set("nextn_predict_layers", 1);
    if (const auto values = number(config_, "linear_num_value_heads")) {
      set("ssm.inner_size", *values * *number(config_, "linear_value_head_dim"));
    }
    file_.number(key("attention.layer_norm_rms_epsilon"), real(config_, "rms_norm_eps"));
    if (case_.is_glm) file_.string("tokenizer.ggml.pre", "glm4");
    if (case_.is_gemma()) return GgufGemmaMetadata(file_, config_).write();
    const Json* rope = find(config_, "rope_parameters");
    file_.number(key("rope.freq_base"), real(rope != nullptr ? *rope : config_, "rope_theta"));
    if (number(config_, "kv_lora_rank")) {
      write_latent();
    } else {
      set("attention.head_count_kv", *number(config_, "num_key_value_heads"));
    }
    if (number(config_, "n_routed_experts")) {
      set("expert_gating_func", case_.is_deepseek4() ? 4 : 2);
      file_.number(key("expert_weights_scale"), real(config_, "routed_scaling_factor"));
      file_.boolean(key("expert_weights_norm"), find(config_, "norm_topk_prob")->as_bool());
    }
    if (case_.is_kimi_linear()) write_kimi_linear();
    if (case_.is_deepseek4()) write_deepseek4_values(file_, config_);
    const Json* types = find(config_, "indexer_types");
    if (types != nullptr && !case_.lacks_indexer_types) {
      std::string marks;
      for (const Json& type : types->get_array()) {
        marks += static_cast<char>(type.get_string() == "full");
      }
      file_.array(key("attention.indexer.types"), GgufWriter::kBool, marks.size(), marks);
    }
    if (const auto dimensions = number(config_, "rotary_dim")) {  // MiniMax M2
      set("rope.dimension_count", *dimensions);
      set("expert_feed_forward_length", *number(config_, "intermediate_size"));
      set("expert_gating_func", 2);
    }
    auto part = number(config_, "partial_rotary_factor");
    if (!part && rope != nullptr) part = number(*rope, "partial_rotary_factor");
    if (part && !number(config_, "kv_lora_rank")) {
      set("rope.dimension_count", *part * *number(config_, "head_dim"));
    }
    if (case_.is_gpt_oss) {
      set("attention.sliding_window", *number(config_, "sliding_window"));
      set("expert_feed_forward_length", *number(config_, "intermediate_size"));
    }
    if (rope == nullptr) rope = find(config_, "rope_scaling");
    if (rope != nullptr && find(*rope, "factor") != nullptr) write_yarn(*rope);
  }

 private:
  static std::optional<double> number(const Json& object, std::string_view name) {
    const Json* value = find(object, name);
    return value != nullptr && value->is_number() ? std::optional(value->to_number<double>())
                                                  : std::nullopt;
  }
  // Gemma's depend on a layer's kind, a latent has its own lengths.
  bool has_other_form(std::string_view name) const {
    if (name == "head_dim") return case_.is_gemma() || number(config_, "kv_lora_rank").has_value();
    return case_.is_gemma() && name == "intermediate_size";
  }
  static float real(const Json& object, std::string_view name) {
    return static_cast<float>(number(object, name).value());
  }
  std::string key(std::string_view name) const {
    return std::string(case_.architecture) + "." + std::string(name);
  }
  void set(std::string_view name, double value) {
    file_.integer(key(name), static_cast<uint32_t>(value));
  }

  // Since 2025 the lengths are those of the absorbed form: one head for the latent.
  void write_latent() {
    const double rope = *number(config_, "qk_rope_head_dim");
    const double key_length = *number(config_, "qk_nope_head_dim") + rope;
    const double latent = *number(config_, "kv_lora_rank");
    const double value = *number(config_, "v_head_dim");
    set("rope.dimension_count", rope);
    if (case_.is_kimi_linear()) {
      set("attention.key_length_mla", key_length);
      return set("attention.value_length_mla", value);
    }
    if (!case_.splits_latent) {
      set("attention.head_count_kv", *number(config_, "num_key_value_heads"));
      set("attention.key_length", key_length);
      return set("attention.value_length", value);
    }
    set("attention.head_count_kv", 1);
    set("attention.key_length", latent + rope);
    set("attention.value_length", latent);
    set("attention.key_length_mla", key_length);
    set("attention.value_length_mla", value);
  }
  // KimiLinearModel: a recurrent layer has no heads of keys.
  void write_kimi_linear() {
    const Json& linear = *find(config_, "linear_attn_config");
    std::vector<uint32_t> heads(static_cast<size_t>(*number(config_, "num_hidden_layers")), 0);
    for (const Json& layer : find(linear, "full_attn_layers")->get_array()) {
      heads[static_cast<size_t>(layer.as_int64() - 1)] = 1;
    }
    std::string bytes;
    for (const uint32_t count : heads) bytes += GgufWriter::raw(count);
    file_.array(key("attention.head_count_kv"), GgufWriter::kUint32, heads.size(), bytes);
    set("kda.head_dim", *number(linear, "head_dim"));
    set("ssm.conv_kernel", *number(linear, "short_conv_kernel_size"));
    set("expert_gating_func", 2);
    file_.number(key("expert_weights_scale"), real(config_, "routed_scaling_factor"));
  }
  void write_yarn(const Json& rope) {
    file_.string(key("rope.scaling.type"), "yarn");
    file_.number(key("rope.scaling.factor"), real(rope, "factor"));
    set("rope.scaling.original_context_length", *number(rope, "original_max_position_embeddings"));
    file_.number(key("rope.scaling.yarn_beta_fast"), real(rope, "beta_fast"));
    file_.number(key("rope.scaling.yarn_beta_slow"), real(rope, "beta_slow"));
    const double all_dims = number(rope, "mscale_all_dim").value_or(0);
    const bool is_deepseek = number(config_, "kv_lora_rank").has_value();
    if (all_dims != 0) {
      file_.number(key("rope.scaling.yarn_log_multiplier"),
                   static_cast<float>(is_deepseek ? 0.1 * all_dims : all_dims));
    }
    const double beta = number(rope, "llama_4_scaling_beta").value_or(0);
    if (beta != 0) file_.number(key("attention.temperature_scale"), static_cast<float>(beta));
  }

  GgufWriter& file_;
  const Json& config_;
  const GgufCase& case_;
};

}  // namespace lockstep::testing
