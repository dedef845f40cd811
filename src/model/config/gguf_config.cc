#include "model/config/gguf_config.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/gguf_end_tokens.h"
#include "json/json.h"
#include "model/config/config_fields.h"
#include "model/config/gguf_compressed.h"
#include "model/config/gguf_fields.h"
#include "model/config/gguf_gemma.h"
#include "tensor/ggml_blocks.h"
#include "weights/gguf/gguf_names.h"

namespace lockstep {
namespace {

// Architectures with differences, by name.
constexpr std::string_view kDeepseek = "deepseek2", kGptOss = "gpt-oss", kGlm4Moe = "glm4moe",
                           kQwen3Moe = "qwen3moe", kLlama = "llama", kMistral = "mistral3",
                           kMiniMax = "minimax-m2", kQwen3Next = "qwen3next", kQwen35 = "qwen35",
                           kQwen35Moe = "qwen35moe", kGemma = "gemma4", kGlmDsa = "glm-dsa",
                           kDeepseek32 = "deepseek32", kKimiLinear = "kimi-linear",
                           kDeepseek4 = "deepseek4";

// A value of "<architecture>.expert_gating_func", and its name in config.json.
struct ExpertGating {
  int64_t number;
  std::string_view name;
};
constexpr ExpertGating kSoftmax{1, "softmax"}, kSigmoid{2, "sigmoid"},
    kRootSoftplus{4, "sqrtsoftplus"};

class ConfigWriter {
 public:
  ConfigWriter(const GgufModel& model, const GgufArchitecture& architecture)
      : model_(model), architecture_(architecture), fields_(model, architecture.name) {}

  Result<std::string> write() {
    TRY(write_architecture());
    TRY(write_sizes());
    if (is(kGemma)) {
      TRY(copy("num_attention_heads", "attention.head_count"));
      TRY(write_gemma(model_, fields_, layers_, json_));
    } else {
      TRY(write_attention());
      TRY(write_experts());
      TRY(write_recurrent());
      TRY(write_rope());
      TRY(write_windows());
    }
    TRY(refuse_unknown_features());
    TRY(write_tokens());
    return dump_json(json_);
  }

 private:
  bool is(std::string_view name) const { return architecture_.name == name; }
  bool has_index() const { return is(kGlmDsa) || is(kDeepseek32); }
  bool has_latent() const { return is(kDeepseek) || is(kKimiLinear) || has_index(); }
  bool has_deepseek_experts() const { return has_latent() || is(kDeepseek4); }
  bool is_recurrent() const { return is(kQwen3Next) || is(kQwen35) || is(kQwen35Moe); }
  bool is_qwen_of_experts() const { return is(kQwen3Moe) || is(kQwen3Next) || is(kQwen35Moe); }
  bool has_tensor(std::string_view name) const { return model_.tensor(name) != nullptr; }
  Status copy(std::string_view to, std::string_view from);
  Status copy_if_there(std::string_view to, std::string_view from);

  Status write_architecture();
  Status write_sizes();
  Status write_width();
  Status write_attention();
  Status write_latent();
  Status write_indexer();
  Status write_experts();
  Status write_shared_experts();
  Status write_expert_groups(int64_t count);
  Status check_gating();
  Status write_recurrent();
  Status write_kimi_linear();
  Status write_rope();
  Result<JsonObject> yarn();
  Status write_frequency_factors();
  Status write_windows();
  Status refuse_unknown_features();
  Status write_tokens();

  const GgufModel& model_;
  const GgufArchitecture& architecture_;
  GgufFields fields_;
  JsonObject json_;
  int64_t layers_ = 0;
  bool is_glm_flash_ = false;
};

Status ConfigWriter::copy(std::string_view to, std::string_view from) {
  json_[to] = TRY(fields_.required_integer(from));
  return Ok{};
}

Status ConfigWriter::copy_if_there(std::string_view to, std::string_view from) {
  const auto value = TRY(fields_.integer(from));
  if (value) json_[to] = *value;
  return Ok{};
}

// GLM 4.7 Flash has DeepSeek's architecture in GGUF files, but other epsilons; it is known by its
// tokenizer.
Status ConfigWriter::write_architecture() {
  const auto pre = TRY(model_.metadata().string("tokenizer.ggml.pre"));
  is_glm_flash_ = is(kDeepseek) && (pre == "glm4" || pre == "chatglm-bpe");
  json_["architectures"] =
      JsonArray{Json(is_glm_flash_ ? "Glm4MoeLiteForCausalLM" : architecture_.hugging_face)};
  return Ok{};
}

Status ConfigWriter::write_sizes() {
  const int64_t blocks = TRY(fields_.required_integer("block_count"));
  const GgufLayers layers = TRY(gguf_layers(model_, architecture_));
  layers_ = layers.own;
  if (layers_ < 1 || layers_ > kLayersMax) {
    return corrupt(fmt::format("{} blocks, of which {} predict further tokens, are not possible",
                               blocks, layers.predicting));
  }
  json_["num_hidden_layers"] = layers_;
  // Files of DeepSeek V4 lack the gates of the draft layer's last streams.
  if (layers.predicting > 0 && !is(kDeepseek4)) {
    json_["num_nextn_predict_layers"] = layers.predicting;
  }
  TRY(copy("hidden_size", "embedding_length"));
  TRY(copy("max_position_embeddings", "context_length"));
  if (!is(kGemma) && !is(kDeepseek4)) TRY(write_width());
  const auto epsilon = TRY(fields_.number("attention.layer_norm_rms_epsilon"));
  if (!epsilon) return fields_.missing("attention.layer_norm_rms_epsilon");
  json_["rms_norm_eps"] = *epsilon;
  const GgufTensor* embedding = model_.tensor("token_embd.weight");
  if (!embedding || embedding->dimensions.size() < 2 || embedding->dimensions[1] > kSizeMax) {
    return corrupt("the file holds no weights: there is no matrix token_embd.weight");
  }
  json_["vocab_size"] = embedding->dimensions[1];
  json_["tie_word_embeddings"] = !has_tensor("output.weight");
  return Ok{};
}

// In Hugging Face's gpt-oss and MiniMax M2 it is an expert's; Qwen's models of experts have no
// dense layers that would use it.
Status ConfigWriter::write_width() {
  const int64_t dense = TRY(fields_.integer("feed_forward_length")).value_or(0);
  const bool is_of_experts = is(kGptOss) || is(kMiniMax) || (is_qwen_of_experts() && dense == 0);
  return copy("intermediate_size",
              is_of_experts ? "expert_feed_forward_length" : "feed_forward_length");
}

Status ConfigWriter::write_attention() {
  TRY(copy("num_attention_heads", "attention.head_count"));
  json_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
  json_["use_qk_norm"] = has_tensor("blk.0.attn_q_norm.weight");
  json_["mlp_bias"] = has_tensor("blk.0.ffn_up.bias");
  if (has_latent()) return write_latent();
  if (is(kDeepseek4)) return write_gguf_compressed(fields_, layers_, json_);
  TRY(copy_if_there("num_key_value_heads", "attention.head_count_kv"));
  TRY(copy_if_there("head_dim", "attention.key_length"));
  const auto key = TRY(fields_.integer("attention.key_length"));
  const auto value = TRY(fields_.integer("attention.value_length"));
  if (value && value != key) {
    return unsupported(fmt::format("values of {} elements under keys of {} are not supported",
                                   *value, key.value_or(0)));
  }
  const auto rotated = TRY(fields_.integer("rope.dimension_count"));
  const int64_t heads = TRY(fields_.required_integer("attention.head_count"));
  const int64_t hidden = TRY(fields_.required_integer("embedding_length"));
  const int64_t head_dim = key ? *key : (heads > 0 ? hidden / heads : 0);
  if (!rotated || *rotated == head_dim || head_dim == 0) return Ok{};
  if (architecture_.interleaves_heads) {
    return unsupported(fmt::format("{} of {} elements of a head rotated are not supported for {}",
                                   *rotated, head_dim, architecture_.name));
  }
  json_["partial_rotary_factor"] = static_cast<double>(*rotated) / static_cast<double>(head_dim);
  return Ok{};
}

// The file's own head counts and lengths are for the absorbed form: one head of the latent. Files
// from before 2025 lack the "_mla" keys and have the lengths of the heads instead.
Status ConfigWriter::write_latent() {
  const auto query_rank = TRY(fields_.integer("attention.q_lora_rank"));
  if (query_rank) json_["q_lora_rank"] = *query_rank;
  TRY(copy("kv_lora_rank", "attention.kv_lora_rank"));
  TRY(copy("qk_rope_head_dim", "rope.dimension_count"));
  const int64_t rotated = TRY(fields_.required_integer("rope.dimension_count"));
  const bool is_absorbed = TRY(fields_.integer("attention.key_length_mla")).has_value();
  const int64_t key = TRY(
      fields_.required_integer(is_absorbed ? "attention.key_length_mla" : "attention.key_length"));
  TRY(copy("v_head_dim", is_absorbed ? "attention.value_length_mla" : "attention.value_length"));
  json_["qk_nope_head_dim"] = key - rotated;
  json_["num_key_value_heads"] = json_["num_attention_heads"];
  return has_index() ? write_indexer() : Ok{};
}

// Files of GLM 5.2 from before the list tell the layers by their tensors.
Status ConfigWriter::write_indexer() {
  TRY(copy("index_n_heads", "attention.indexer.head_count"));
  TRY(copy("index_head_dim", "attention.indexer.key_length"));
  TRY(copy("index_topk", "attention.indexer.top_k"));
  constexpr std::string_view kTypes = "attention.indexer.types";
  std::vector<bool> are_full;
  if (fields_.has(kTypes)) {
    are_full = TRY(fields_.layer_pattern(kTypes, layers_, 0));
  } else {
    for (int64_t layer = 0; layer < layers_; ++layer) {
      are_full.push_back(has_tensor(fmt::format("blk.{}.indexer.proj.weight", layer)));
    }
  }
  json_["indexer_types"] = words_of(are_full, "full", "shared");
  return Ok{};
}

Status ConfigWriter::write_experts() {
  const int64_t count = TRY(fields_.integer("expert_count")).value_or(0);
  const bool has_experts =
      has_deepseek_experts() || is(kGptOss) || is(kGlm4Moe) || is_qwen_of_experts() || is(kMiniMax);
  if (!has_experts) {
    if (count == 0) return Ok{};
    return unsupported(
        fmt::format("experts in the architecture \"{}\" are not supported", architecture_.name));
  }
  const bool is_shared_kind = has_deepseek_experts() || is(kGlm4Moe);
  const std::string_view count_name = is_shared_kind                ? "n_routed_experts"
                                      : is(kGptOss) || is(kMiniMax) ? "num_local_experts"
                                                                    : "num_experts";
  TRY(copy(count_name, "expert_count"));
  TRY(copy("num_experts_per_tok", "expert_used_count"));
  if (is(kGptOss)) return Ok{};
  TRY(copy("moe_intermediate_size", "expert_feed_forward_length"));
  TRY(check_gating());
  if (is_shared_kind) return write_shared_experts();
  if (is(kMiniMax)) return Ok{};
  TRY(copy_if_there("shared_expert_intermediate_size", "expert_shared_feed_forward_length"));
  // Not written for Qwen's models, but true for all published ones.
  json_["norm_topk_prob"] = TRY(fields_.boolean("expert_weights_norm")).value_or(true);
  return Ok{};
}

Status ConfigWriter::write_shared_experts() {
  TRY(copy_if_there("n_shared_experts", "expert_shared_count"));
  TRY(copy_if_there("first_k_dense_replace", "leading_dense_block_count"));
  TRY(write_expert_groups(TRY(fields_.required_integer("expert_count"))));
  // Kimi Linear's files have no such key.
  json_["norm_topk_prob"] = TRY(fields_.boolean("expert_weights_norm")).value_or(is(kKimiLinear));
  const double scale = TRY(fields_.number("expert_weights_scale")).value_or(0);
  if (scale != 0) json_["routed_scaling_factor"] = scale;
  return Ok{};
}

// The keys are newer than DeepSeek V3, whose older files lack them. Among deepseek2 files only its
// family has 256 experts: in 8 groups, 4 of them chosen.
Status ConfigWriter::write_expert_groups(int64_t count) {
  const auto groups = TRY(fields_.integer("expert_group_count"));
  if (!groups && is(kDeepseek) && count == 256) {
    json_["n_group"] = 8;
    json_["topk_group"] = 4;
  } else if (groups && *groups > 0) {
    json_["n_group"] = *groups;
    TRY(copy("topk_group", "expert_group_used_count"));
  }
  return Ok{};
}

Status ConfigWriter::check_gating() {
  const bool is_sigmoid = is(kGlm4Moe) || has_latent() || is(kMiniMax);
  const ExpertGating& gating = is(kDeepseek4) ? kRootSoftplus : is_sigmoid ? kSigmoid : kSoftmax;
  // The first files of GLM 4.7 Flash lack the key, too.
  const bool may_lack = is(kGlm4Moe) || is(kGlmDsa) || is_glm_flash_ || is(kMiniMax);
  const ExpertGating& otherwise = may_lack || is(kDeepseek4) ? gating : kSoftmax;
  const int64_t stored = TRY(fields_.integer("expert_gating_func")).value_or(otherwise.number);
  // No converter writes 0; as in llama.cpp it means that the key is missing.
  const bool is_missing = stored == 0 && !is(kDeepseek) && !is(kDeepseek4);
  if (stored == gating.number || is_missing) {
    if (gating.number != kSoftmax.number) json_["scoring_func"] = gating.name;
    return Ok{};
  }
  return unsupported(
      fmt::format("experts chosen by function {} are not supported for {}, only {}, {}, is", stored,
                  architecture_.name, gating.number, gating.name));
}

// The names are those of another recurrence: a group is a key head, the rank of the time step is
// the number of value heads.
Status ConfigWriter::write_recurrent() {
  if (is(kKimiLinear)) return write_kimi_linear();
  if (!is_recurrent()) return Ok{};
  TRY(copy("linear_num_key_heads", "ssm.group_count"));
  TRY(copy("linear_num_value_heads", "ssm.time_step_rank"));
  TRY(copy("linear_key_head_dim", "ssm.state_size"));
  TRY(copy("linear_conv_kernel_dim", "ssm.conv_kernel"));
  const int64_t values = TRY(fields_.required_integer("ssm.time_step_rank"));
  const int64_t inner = TRY(fields_.required_integer("ssm.inner_size"));
  if (values == 0 || inner % values != 0) {
    return corrupt(fmt::format("{} value heads cannot share {} columns", values, inner));
  }
  json_["linear_value_head_dim"] = inner / values;
  // Older files have the inputs in one matrix, as Hugging Face's have.
  if (is(kQwen3Next)) json_["linear_groups_inputs"] = has_tensor("blk.0.ssm_in.weight");
  constexpr std::string_view kMarks = "attention.recurrent_layers";
  const auto recurrent = TRY(
      fields_.layer_pattern(fields_.has(kMarks) ? kMarks : "full_attention_interval", layers_, 4));
  json_["layer_types"] = words_of(recurrent, "linear_attention", "full_attention");
  return Ok{};
}

// A layer without heads of keys is recurrent.
Status ConfigWriter::write_kimi_linear() {
  const auto heads =
      TRY(fields_.of_layers("attention.head_count_kv", static_cast<size_t>(layers_)));
  JsonArray recurrent, full;
  for (size_t layer = 0; layer < heads.size(); ++layer) {
    const std::string gate = fmt::format("blk.{}.attn_gate.weight", layer);
    if (has_tensor(gate))
      return unsupported("a gate of the attention, " + gate + ", is not supported");
    (heads[layer] == 0 ? recurrent : full).push_back(static_cast<int64_t>(layer) + 1);
  }
  JsonObject linear{{"kda_layers", std::move(recurrent)}, {"full_attn_layers", std::move(full)}};
  linear["num_heads"] = TRY(fields_.required_integer("attention.head_count"));
  linear["head_dim"] = TRY(fields_.required_integer("kda.head_dim"));
  linear["short_conv_kernel_size"] = TRY(fields_.required_integer("ssm.conv_kernel"));
  json_["linear_attn_config"] = std::move(linear);
  json_["mla_use_nope"] = true;
  return Ok{};
}

Status ConfigWriter::write_rope() {
  json_["rope_theta"] = TRY(fields_.number("rope.freq_base")).value_or(10000.0);
  TRY(write_frequency_factors());
  const std::string type(TRY(fields_.text("rope.scaling.type")).value_or("none"));
  if (type == "yarn") {
    json_["rope_scaling"] = TRY(yarn());
  } else if (type != "none") {
    json_["rope_scaling"] = JsonObject{{"rope_type", type}};
  }
  return Ok{};
}

Result<JsonObject> ConfigWriter::yarn() {
  JsonObject scaling{{"rope_type", "yarn"}};
  const auto copy_number = [&](const char* to, std::string_view from) -> Status {
    const auto value = TRY(fields_.number(from));
    if (value) scaling[to] = *value;
    return Ok{};
  };
  TRY(copy_number("factor", "rope.scaling.factor"));
  TRY(copy_number("beta_fast", "rope.scaling.yarn_beta_fast"));
  TRY(copy_number("beta_slow", "rope.scaling.yarn_beta_slow"));
  TRY(copy_number("attention_factor", "rope.scaling.yarn_attn_factor"));
  TRY(copy_number("llama_4_scaling_beta", "attention.temperature_scale"));
  const auto original = TRY(fields_.integer("rope.scaling.original_context_length"));
  if (!original) return fields_.missing("rope.scaling.original_context_length");
  scaling["original_max_position_embeddings"] = *original;
  if (is(kGptOss)) scaling["truncate"] = false;  // not in the file, but so in all published ones
  double multiplier = TRY(fields_.number("rope.scaling.yarn_log_multiplier")).value_or(0);
  // DeepSeek's files contain a tenth of mscale_all_dim; mscale, which they lack, is always equal to
  // it; for others mscale is 1. https://github.com/ggml-org/llama.cpp/pull/17945
  if (has_latent()) multiplier = std::round(multiplier * 1e7) / 1e6;
  if (multiplier != 0) {
    scaling["mscale"] = has_latent() ? multiplier : 1.0;
    scaling["mscale_all_dim"] = multiplier;
  }
  return scaling;
}

// The file has Llama 3's scaling as divisors of each pair's frequency.
Status ConfigWriter::write_frequency_factors() {
  const GgufTensor* tensor = model_.tensor("rope_freqs.weight");
  if (!tensor) return Ok{};
  const size_t count = tensor->bytes.size() / sizeof(float);
  if (tensor->type_id != static_cast<uint32_t>(GgmlType::kF32) || count > kSizeMax) {
    return unsupported(fmt::format("rope_freqs.weight has the type {}, only F32 is supported",
                                   gguf_type_name(tensor->type_id)));
  }
  JsonArray factors;
  for (size_t i = 0; i < count; ++i) {
    float factor = 0;
    std::memcpy(&factor, tensor->bytes.data() + i * sizeof(float), sizeof(float));
    factors.push_back(double{factor});
  }
  json_["rope_frequency_factors"] = std::move(factors);
  return Ok{};
}

// llama.cpp uses no windows in the other architectures, whatever their files contain.
Status ConfigWriter::write_windows() {
  if (!is(kGptOss) && !is(kLlama) && !is(kMistral)) return Ok{};
  const int64_t window = TRY(fields_.integer("attention.sliding_window")).value_or(0);
  if (window == 0) return Ok{};
  json_["sliding_window"] = window;
  const auto windowed =
      TRY(fields_.layer_pattern("attention.sliding_window_pattern", layers_, is(kGptOss) ? 2 : 0));
  json_["layer_types"] = words_of(windowed, "sliding_attention", "full_attention");
  return Ok{};
}

Status ConfigWriter::refuse_unknown_features() {
  struct Neutral {
    std::string_view key;
    double value;  // has no effect
  };
  constexpr Neutral kNeutral[] = {
      {"attention.scale", 0},          {"rope.scale_linear", 1},
      {"rope.scaling.attn_factor", 1}, {"rope.scaling.yarn_ext_factor", 1},
      {"attention.clamp_kqv", 0},      {"logit_scale", 0}};
  for (const Neutral& neutral : kNeutral) {
    const double value = TRY(fields_.number(neutral.key)).value_or(neutral.value);
    if (value == neutral.value) continue;
    return unsupported(fmt::format("the GGUF value {}.{} is {}, which is not supported",
                                   architecture_.name, neutral.key, value));
  }
  if (!TRY(fields_.boolean("attention.causal")).value_or(true)) {
    return unsupported("attention to later tokens is not supported");
  }
  return Ok{};
}

Status ConfigWriter::write_tokens() {
  const auto begin = TRY(model_.metadata().integer("tokenizer.ggml.bos_token_id"));
  if (begin) json_["bos_token_id"] = *begin;
  JsonArray ends;
  for (const int64_t id : TRY(gguf_end_tokens(model_.metadata()))) ends.push_back(id);
  if (!ends.empty()) json_["eos_token_id"] = std::move(ends);
  return Ok{};
}

}  // namespace

Result<std::string> gguf_config(const GgufModel& model) {
  const GgufArchitecture& architecture = *TRY(gguf_architecture(model.metadata()));
  return ConfigWriter(model, architecture).write();
}

Result<std::string> read_gguf_config(const std::filesystem::path& path) {
  const GgufModel model = TRY(GgufModel::open(path));
  auto text = gguf_config(model);
  if (text.ok()) return text;
  return Error{text.error().code, path.string() + ": " + text.error().message};
}

}  // namespace lockstep
