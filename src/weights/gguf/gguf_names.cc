#include "weights/gguf/gguf_names.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace lockstep {
namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .hugging_face = "LlamaForCausalLM", .interleaves_heads = true},
    {.name = "mistral3", .hugging_face = "Ministral3ForCausalLM", .interleaves_heads = true},
    {.name = "qwen2", .hugging_face = "Qwen2ForCausalLM"},
    {.name = "qwen3", .hugging_face = "Qwen3ForCausalLM"},
    {.name = "qwen3moe", .hugging_face = "Qwen3MoeForCausalLM"},
    {.name = "deepseek2", .hugging_face = "DeepseekV3ForCausalLM"},
    {.name = "deepseek32", .hugging_face = "DeepseekV32ForCausalLM"},
    {.name = "deepseek4", .hugging_face = "DeepseekV4ForCausalLM", .may_lack_drafts = true},
    {.name = "gpt-oss", .hugging_face = "GptOssForCausalLM"},
    {.name = "glm4moe", .hugging_face = "Glm4MoeForCausalLM"},
    {.name = "glm-dsa", .hugging_face = "GlmMoeDsaForCausalLM"},
    {.name = "gemma4", .hugging_face = "Gemma4ForCausalLM", .has_named_scales = true},
    {.name = "minimax-m2", .hugging_face = "MiniMaxM2ForCausalLM"},
    {.name = "kimi-linear", .hugging_face = "KimiLinearForCausalLM"},
    {.name = "qwen3next",
     .hugging_face = "Qwen3NextForCausalLM",
     .delta_order = DeltaOrder::kJoinedRates},
    {.name = "qwen35",
     .hugging_face = "Qwen3_5ForConditionalGeneration",
     .delta_order = DeltaOrder::kTiled},
    {.name = "qwen35moe",
     .hugging_face = "Qwen3_5MoeForConditionalGeneration",
     .delta_order = DeltaOrder::kTiled},
};

using Half = GgufPlace::Half;

struct TensorName {
  std::string_view hugging_face;
  std::string_view gguf;
  bool is_stack = false;
  bool is_whole = false;  // `gguf` has no ending, or one of its own
  Half half = Half::kNone;
};

constexpr TensorName kSharedNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.hc_head_fn.weight", "output_hc_fn.weight"},
    {"model.hc_head_scale", "output_hc_scale.weight"},
    {"model.hc_head_base", "output_hc_base.weight"},
    {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
    {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight"},
    {"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
};

// Names within a layer. ".weight" and ".bias" are the same on both sides unless GGUF's name here
// includes its ending; Hugging Face's then has it too, or has none.
constexpr TensorName kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
    // Newer files hold kv_b_proj split into heads: (heads, kv_rank, nope), transposed for the
    // absorbed form, and (heads, value, kv_rank).
    {"self_attn.embed_q", "attn_k_b", true},
    {"self_attn.unembed_out", "attn_v_b", true},
    // Gemma 4 has both; gpt-oss, glm4moe and Qwen 3.5 have this one, others ffn_norm.
    {"post_attention_layernorm", "post_attention_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"router.scale", "ffn_gate_inp.scale", false, true},
    {"router.proj", "ffn_gate_inp"},
    {"router.per_expert_scale", "ffn_down_exps.scale", false, true},
    {"experts.gate_proj", "ffn_gate_exps", true},
    {"experts.gate_proj", "ffn_gate_up_exps", true, false, Half::kFirst},
    {"experts.up_proj", "ffn_up_exps", true},
    {"experts.up_proj", "ffn_gate_up_exps", true, false, Half::kSecond},
    {"experts.down_proj", "ffn_down_exps", true},
    {"self_attn.indexer.wq_b", "indexer.attn_q_b"},
    {"self_attn.indexer.wk", "indexer.attn_k"},
    {"self_attn.indexer.k_norm", "indexer.k_norm"},
    {"self_attn.indexer.weights_proj", "indexer.proj"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.gate_proj", "ffn_gate_exps", true},
    {"mlp.experts.gate_proj", "ffn_gate_up_exps", true, false, Half::kFirst},
    {"mlp.experts.up_proj", "ffn_up_exps", true},
    {"mlp.experts.up_proj", "ffn_gate_up_exps", true, false, Half::kSecond},
    {"mlp.experts.down_proj", "ffn_down_exps", true},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"block_sparse_moe.shared_experts.up_proj", "ffn_up_shexp"},
    {"block_sparse_moe.shared_experts.down_proj", "ffn_down_shexp"},
    {"block_sparse_moe.experts.w1", "ffn_gate_exps", true},
    {"block_sparse_moe.experts.w3", "ffn_up_exps", true},
    {"block_sparse_moe.experts.w2", "ffn_down_exps", true},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"linear_attn.in_proj_qkvz", "ssm_in"},  // of older files
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_b", "ssm_ba"},  // some of its rows
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_a", "ssm_ba"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.A_log", "ssm_a", false, true},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
    {"self_attn.q_conv1d", "ssm_conv1d_q"},
    {"self_attn.k_conv1d", "ssm_conv1d_k"},
    {"self_attn.v_conv1d", "ssm_conv1d_v"},
    {"self_attn.A_log", "ssm_a", false, true},
    {"self_attn.dt_bias", "ssm_dt.bias"},
    {"self_attn.b_proj", "ssm_beta"},
    {"self_attn.f_a_proj", "ssm_f_a"},
    {"self_attn.f_b_proj", "ssm_f_b"},
    {"self_attn.g_a_proj", "ssm_g_a"},
    {"self_attn.g_b_proj", "ssm_g_b"},
    {"self_attn.o_norm", "ssm_norm"},
    {"attn_norm", "attn_norm"},
    {"attn.wq_a", "attn_q_a"},
    {"attn.q_norm", "attn_q_a_norm"},
    {"attn.wq_b", "attn_q_b"},
    {"attn.wkv", "attn_kv"},
    {"attn.kv_norm", "attn_kv_a_norm"},
    {"attn.attn_sink", "attn_sinks.weight"},
    {"attn.wo_a", "attn_output_a"},
    {"attn.wo_b", "attn_output_b"},
    {"attn.compressor.wkv", "attn_compressor_kv"},
    {"attn.compressor.wgate", "attn_compressor_gate"},
    {"attn.compressor.ape", "attn_compressor_ape.weight"},
    {"attn.compressor.norm", "attn_compressor_norm"},
    {"attn.indexer.wq_b", "indexer.attn_q_b"},
    {"attn.indexer.weights_proj", "indexer.proj"},
    {"attn.indexer.compressor.wkv", "indexer_compressor_kv"},
    {"attn.indexer.compressor.wgate", "indexer_compressor_gate"},
    {"attn.indexer.compressor.ape", "indexer_compressor_ape.weight"},
    {"attn.indexer.compressor.norm", "indexer_compressor_norm"},
    {"hc_attn_fn", "hc_attn_fn"},
    {"hc_attn_scale", "hc_attn_scale.weight"},
    {"hc_attn_base", "hc_attn_base.weight"},
    {"hc_ffn_fn", "hc_ffn_fn"},
    {"hc_ffn_scale", "hc_ffn_scale.weight"},
    {"hc_ffn_base", "hc_ffn_base.weight"},
    {"ffn_norm", "ffn_norm"},
    {"ffn.gate", "ffn_gate_inp"},
    {"ffn.gate.bias", "exp_probs_b.bias"},
    {"ffn.gate.tid2eid", "ffn_gate_tid2eid.weight"},
    {"ffn.experts.w1", "ffn_gate_exps", true},
    {"ffn.experts.w3", "ffn_up_exps", true},
    {"ffn.experts.w2", "ffn_down_exps", true},
    {"ffn.shared_experts.w1", "ffn_gate_shexp"},
    {"ffn.shared_experts.w3", "ffn_up_shexp"},
    {"ffn.shared_experts.w2", "ffn_down_shexp"},
    {"eh_proj", "nextn.eh_proj"},
    {"enorm", "nextn.enorm"},
    {"hnorm", "nextn.hnorm"},
    {"shared_head.norm", "nextn.shared_head_norm"},
};

// Names in a layer that predicts further tokens, where Hugging Face's name is not that of a layer.
struct PredictingName {
  std::string_view hugging_face;
  std::string_view in_layer;
};
constexpr PredictingName kPredictingNames[] = {
    {"mtp.fc.", "eh_proj."},
    {"mtp.pre_fc_norm_embedding.", "enorm."},
    {"mtp.pre_fc_norm_hidden.", "hnorm."},
    {"mtp.norm.", "shared_head.norm."},
};
constexpr std::string_view kPredictingPrefix = "mtp.layers.";

constexpr std::string_view kLayerPrefix = "model.layers.";
constexpr std::string_view kExpertPrefixes[] = {"mlp.experts.", "experts.",
                                                "block_sparse_moe.experts.", "ffn.experts."};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

constexpr std::string_view kEndings[] = {".weight", ".bias"};

bool ends_with_ending(std::string_view name) {
  return name.ends_with(kEndings[0]) || name.ends_with(kEndings[1]);
}

// "12." of "12.rest".
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<size_t>(parsed.ptr - text.data());
  if (parsed.ec != std::errc() || number < 0 || length == text.size() || text[length] != '.') {
    return std::nullopt;
  }
  text.remove_prefix(length + 1);
  return number;
}

struct PlaceInLayer {
  int64_t layer = 0;
  std::string name;
};

std::optional<PlaceInLayer> place_in_layer(std::string_view name, int64_t layers) {
  for (const PredictingName& known : kPredictingNames) {
    std::string_view rest = name;
    if (take_prefix(rest, known.hugging_face)) {
      return PlaceInLayer{layers, std::string(known.in_layer) + std::string(rest)};
    }
  }
  const bool is_predicting = take_prefix(name, kPredictingPrefix);
  if (!is_predicting && !take_prefix(name, kLayerPrefix)) return std::nullopt;
  const auto layer = take_number(name);
  if (!layer) return std::nullopt;
  return PlaceInLayer{is_predicting ? layers + *layer : *layer, std::string(name)};
}

}  // namespace

Result<const GgufArchitecture*> gguf_architecture(const GgufFile& metadata) {
  const auto name = TRY(metadata.string("general.architecture"));
  if (!name) return Error{ErrorCode::kCorrupt, "the GGUF value general.architecture is missing"};
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == *name) return &architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return Error{ErrorCode::kUnsupported, "the architecture \"" + std::string(*name) +
                                            "\" is unknown here; known are: " + known};
}

Result<GgufLayers> gguf_layers(const GgufModel& model, const GgufArchitecture& architecture) {
  const std::string name(architecture.name);
  const int64_t blocks = TRY(model.metadata().integer(name + ".block_count")).value_or(0);
  int64_t predicting = TRY(model.metadata().integer(name + ".nextn_predict_layers")).value_or(0);
  if (blocks < 0 || blocks > INT32_MAX || predicting < 0 || predicting > blocks) {
    return Error{ErrorCode::kCorrupt, std::to_string(blocks) + " blocks, of which " +
                                          std::to_string(predicting) +
                                          " predict further tokens, are not possible"};
  }
  const std::string first = "blk." + std::to_string(blocks - predicting) + ".nextn.eh_proj.weight";
  if (architecture.may_lack_drafts && model.tensor(first) == nullptr) predicting = 0;
  return GgufLayers{blocks - predicting, predicting};
}

std::vector<GgufPlace> gguf_places(std::string_view name, int stack_index, int64_t layers) {
  for (const TensorName& shared : kSharedNames) {
    if (shared.hugging_face == name) return {{std::string(shared.gguf)}};
  }
  const auto place = place_in_layer(name, layers);
  if (!place) return {};
  name = place->name;
  std::string stem(name);
  for (const std::string_view prefix : kExpertPrefixes) {
    std::string_view of_expert = name;
    if (!take_prefix(of_expert, prefix)) continue;
    if (const auto expert = take_number(of_expert)) {
      stack_index = *expert;
      stem = std::string(prefix) + std::string(of_expert);
    }
  }
  std::string ending;
  for (const std::string_view candidate : kEndings) {
    if (!stem.ends_with(candidate)) continue;
    stem.resize(stem.size() - candidate.size());
    ending = candidate;
    break;
  }
  std::vector<GgufPlace> places;
  const std::string whole = stem + ending;
  for (const TensorName& known : kLayerNames) {
    const bool names_ending = known.is_whole || ends_with_ending(known.gguf);
    if (known.hugging_face != (names_ending ? whole : stem)) continue;
    if (known.is_stack != (stack_index >= 0) || (!names_ending && ending.empty())) continue;
    places.push_back({"blk." + std::to_string(place->layer) + "." + std::string(known.gguf) +
                          (names_ending ? "" : ending),
                      known.is_stack ? stack_index : -1, known.half});
  }
  return places;
}

}  // namespace lockstep
