// DeepSeek V4's part of GGUF files: the names and values that others have not.
// Rules: src/llama-arch.cpp, src/models/deepseek4.cpp and conversion/deepseek.py of
// https://github.com/ggml-org/llama.cpp
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/json.h"
#include "support/gguf_writer.h"

namespace lockstep::testing {

inline constexpr uint32_t kGgufI32 = 26;

// Names of the whole model, and within a layer those that follow "layers.N.".
struct Deepseek4Name {
  std::string_view published;
  std::string_view gguf;
};
inline constexpr Deepseek4Name kDeepseek4Shared[] = {
    {"embed.weight", "token_embd.weight"},     {"norm.weight", "output_norm.weight"},
    {"head.weight", "output.weight"},          {"hc_head_fn", "output_hc_fn.weight"},
    {"hc_head_base", "output_hc_base.weight"}, {"hc_head_scale", "output_hc_scale.weight"},
};
inline constexpr Deepseek4Name kDeepseek4Layer[] = {
    {"attn_norm.weight", "attn_norm.weight"},
    {"ffn_norm.weight", "ffn_norm.weight"},
    {"attn.wq_a.weight", "attn_q_a.weight"},
    {"attn.q_norm.weight", "attn_q_a_norm.weight"},
    {"attn.wq_b.weight", "attn_q_b.weight"},
    {"attn.wkv.weight", "attn_kv.weight"},
    {"attn.kv_norm.weight", "attn_kv_a_norm.weight"},
    {"attn.attn_sink", "attn_sinks.weight"},
    {"attn.wo_a.weight", "attn_output_a.weight"},
    {"attn.wo_b.weight", "attn_output_b.weight"},
    {"attn.compressor.wkv.weight", "attn_compressor_kv.weight"},
    {"attn.compressor.wgate.weight", "attn_compressor_gate.weight"},
    {"attn.compressor.ape", "attn_compressor_ape.weight"},
    {"attn.compressor.norm.weight", "attn_compressor_norm.weight"},
    {"attn.indexer.wq_b.weight", "indexer.attn_q_b.weight"},
    {"attn.indexer.weights_proj.weight", "indexer.proj.weight"},
    {"attn.indexer.compressor.wkv.weight", "indexer_compressor_kv.weight"},
    {"attn.indexer.compressor.wgate.weight", "indexer_compressor_gate.weight"},
    {"attn.indexer.compressor.ape", "indexer_compressor_ape.weight"},
    {"attn.indexer.compressor.norm.weight", "indexer_compressor_norm.weight"},
    {"hc_attn_fn", "hc_attn_fn.weight"},
    {"hc_attn_base", "hc_attn_base.weight"},
    {"hc_attn_scale", "hc_attn_scale.weight"},
    {"hc_ffn_fn", "hc_ffn_fn.weight"},
    {"hc_ffn_base", "hc_ffn_base.weight"},
    {"hc_ffn_scale", "hc_ffn_scale.weight"},
    {"ffn.gate.weight", "ffn_gate_inp.weight"},
    {"ffn.gate.bias", "exp_probs_b.bias"},
    {"ffn.gate.tid2eid", "ffn_gate_tid2eid.weight"},
    {"ffn.shared_experts.w1.weight", "ffn_gate_shexp.weight"},
    {"ffn.shared_experts.w3.weight", "ffn_up_shexp.weight"},
    {"ffn.shared_experts.w2.weight", "ffn_down_shexp.weight"},
};

// Empty: it has none. Experts are stacks, with names of their own.
inline std::string deepseek4_name(const std::string& published) {
  constexpr std::string_view kLayers = "layers.";
  if (!published.starts_with(kLayers)) {
    for (const Deepseek4Name& name : kDeepseek4Shared) {
      if (name.published == published) return std::string(name.gguf);
    }
    return {};
  }
  const size_t dot = published.find('.', kLayers.size());
  const std::string layer = published.substr(kLayers.size(), dot + 1 - kLayers.size());
  for (const Deepseek4Name& name : kDeepseek4Layer) {
    if (published.substr(dot + 1) == name.published) return "blk." + layer + std::string(name.gguf);
  }
  return {};
}

// Matrices that files keep in F32.
inline bool is_f32_in_deepseek4(std::string_view gguf) {
  return gguf.find("hc_") != std::string_view::npos || gguf.ends_with("_ape.weight");
}

inline void write_deepseek4_values(GgufWriter& file, const Json& config) {
  const auto key = [](std::string_view name) { return "deepseek4." + std::string(name); };
  const auto integer = [&](const char* from, std::string_view to) {
    file.integer(key(to), static_cast<uint32_t>(find(config, from)->as_int64()));
  };
  const auto number = [&](const char* from) {
    return static_cast<float>(find(config, from)->to_number<double>());
  };
  integer("qk_rope_head_dim", "rope.dimension_count");
  integer("sliding_window", "attention.sliding_window");
  integer("o_groups", "attention.output_group_count");
  integer("o_lora_rank", "attention.output_lora_rank");
  integer("num_hash_layers", "hash_layer_count");
  integer("hc_mult", "hyper_connection.count");
  integer("hc_sinkhorn_iters", "hyper_connection.sinkhorn_iterations");
  integer("num_nextn_predict_layers", "nextn_predict_layers");  // which the file has not
  file.number(key("hyper_connection.epsilon"), number("hc_eps"));
  file.number(key("attention.compress_rope_freq_base"), number("compress_rope_theta"));
  std::string pools, limits;
  size_t count = 0;
  for (const Json& pool : find(config, "compress_ratios")->get_array()) {
    pools += GgufWriter::raw(static_cast<int32_t>(pool.as_int64()));
    limits += GgufWriter::raw(number("swiglu_limit"));
    ++count;
  }
  file.array(key("attention.compress_ratios"), GgufWriter::kInt32, count, pools);
  file.array(key("swiglu_clamp_exp"), GgufWriter::kFloat32, count, limits);
}

}  // namespace lockstep::testing
