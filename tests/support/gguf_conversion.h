// Golden cases as GGUF files, converted as llama.cpp's converter does it. Rules: conversion/*.py,
// gguf-py/gguf/constants.py and tensor_mapping.py of https://github.com/ggml-org/llama.cpp
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/gguf_deepseek4.h"
#include "support/gguf_delta_conversion.h"
#include "support/gguf_metadata.h"
#include "support/gguf_writer.h"
#include "support/stored_models.h"
#include "tensor/half.h"

namespace lockstep::testing {

// How matrices are stored: unchanged, rounded to a type, or in F32 with the values that rounding
// gives.
struct GgufRounding {
  std::optional<uint32_t> type;
  bool is_widened = false;
};

inline constexpr uint32_t kGgufF32 = 0, kGgufBf16 = 30, kGgufMxfp4 = 39;

inline constexpr GgufNamePair kGgufNames[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
    {"input_layernorm.", "attn_norm."},
    {"self_attn.q_proj.", "attn_q."},
    {"self_attn.k_proj.", "attn_k."},
    {"self_attn.v_proj.", "attn_v."},
    {"self_attn.o_proj.", "attn_output."},
    {"self_attn.q_norm.", "attn_q_norm."},
    {"self_attn.k_norm.", "attn_k_norm."},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"self_attn.q_a_proj.", "attn_q_a."},
    {"self_attn.q_a_layernorm.", "attn_q_a_norm."},
    {"self_attn.q_b_proj.", "attn_q_b."},
    {"self_attn.kv_a_proj_with_mqa.", "attn_kv_a_mqa."},
    {"self_attn.kv_a_layernorm.", "attn_kv_a_norm."},
    {"self_attn.kv_b_proj.", "attn_kv_b."},
    {"mlp.gate_proj.", "ffn_gate."},
    {"mlp.up_proj.", "ffn_up."},
    {"mlp.down_proj.", "ffn_down."},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.gate.", "ffn_gate_inp."},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.shared_experts.gate_proj.", "ffn_gate_shexp."},
    {"block_sparse_moe.shared_experts.up_proj.", "ffn_up_shexp."},
    {"block_sparse_moe.shared_experts.down_proj.", "ffn_down_shexp."},
    {"self_attn.q_conv1d.", "ssm_conv1d_q."},
    {"self_attn.k_conv1d.", "ssm_conv1d_k."},
    {"self_attn.v_conv1d.", "ssm_conv1d_v."},
    {"self_attn.A_log", "ssm_a"},
    {"self_attn.dt_bias", "ssm_dt.bias"},
    {"self_attn.b_proj.", "ssm_beta."},
    {"self_attn.f_a_proj.", "ssm_f_a."},
    {"self_attn.f_b_proj.", "ssm_f_b."},
    {"self_attn.g_a_proj.", "ssm_g_a."},
    {"self_attn.g_b_proj.", "ssm_g_b."},
    {"self_attn.o_norm.", "ssm_norm."},
    {"block_sparse_moe.gate.", "ffn_gate_inp."},
    {"mlp.router.", "ffn_gate_inp."},
    {"pre_feedforward_layernorm.", "ffn_norm."},
    {"pre_feedforward_layernorm_2.", "pre_ffw_norm_2."},
    {"post_feedforward_layernorm.", "post_ffw_norm."},
    {"post_feedforward_layernorm_1.", "post_ffw_norm_1."},
    {"post_feedforward_layernorm_2.", "post_ffw_norm_2."},
    {"post_per_layer_input_norm.", "post_norm."},
    {"per_layer_input_gate.", "inp_gate."},
    {"model.per_layer_model_projection.", "per_layer_model_proj."},
    {"model.per_layer_projection_norm.", "per_layer_proj_norm."},
    {"per_layer_projection.", "proj."},
    {"model.embed_tokens_per_layer.", "per_layer_token_embd."},
    {"layer_scalar", "layer_output_scale.weight"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.proj.", "ffn_gate_inp."},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"self_attn.indexer.wq_b.", "indexer.attn_q_b."},
    {"self_attn.indexer.wk.", "indexer.attn_k."},
    {"self_attn.indexer.k_norm.", "indexer.k_norm."},
    {"self_attn.indexer.weights_proj.", "indexer.proj."},
    {"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_experts.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_expert.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_expert.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."},
    {"eh_proj.", "nextn.eh_proj."},
    {"enorm.", "nextn.enorm."},
    {"hnorm.", "nextn.hnorm."},
    {"shared_head.norm.", "nextn.shared_head_norm."},
};

class GgufConverter {
 public:
  GgufConverter(const std::string& folder, const GgufCase& subject, const GgufRounding& rounding)
      : case_(subject),
        rounding_(rounding),
        config_(text_config(json_of_file(folder + "/config.json"))) {
    auto checkpoint = Checkpoint::open(folder);
    REQUIRE(checkpoint.ok());
    checkpoint_ = checkpoint.value();
  }

  std::string convert() {
    GgufMetadataWriter(file_, config_, case_).write();
    for (const TensorView& tensor : checkpoint_->tensors()) {
      if (!is_converted(tensor.name)) continue;
      if (tensor.name.find(".linear_attn.") != std::string::npos) {
        add_delta(tensor);
      } else if (tensor.name.find(".experts.") == std::string::npos) {
        add_tensor(tensor);
      } else if (tensor.name.ends_with(".experts.gate_up_proj") && !case_.is_gpt_oss) {
        add_joined_experts(tensor);
      } else if (!case_.is_gpt_oss && tensor.name.ends_with(".experts.down_proj")) {
        add_experts(tensor, "ffn_down_exps", 0, static_cast<size_t>(tensor.shape[1]));
      } else if (case_.is_gpt_oss) {
        add_fused_experts(tensor);
      } else if (tensor.name.find(".experts.0.") != std::string::npos) {
        add_expert_stack(tensor);
      }
    }
    return file_.file();
  }

 private:
  bool is_converted(const std::string& name) const {
    for (const char* part :
         {"rotary_emb", "model.visual.", "model.vision_tower.", "embed_vision."}) {
      if (name.find(part) != std::string::npos) return false;
    }
    // Layers after the model's own predict further tokens.
    const int64_t layers = integer("num_hidden_layers");
    const bool is_draft = name.starts_with("mtp.") ||
                          name.starts_with("model.layers." + std::to_string(layers) + ".");
    return !is_draft || case_.has_draft;
  }

  // The name of a text model by itself, and of a layer for the one that predicts a further token.
  std::string plain_name(std::string name) const {
    if (name.starts_with("layers.")) return "model." + name;
    const std::string wrapper = "model.language_model.";
    if (name.starts_with(wrapper)) return "model." + name.substr(wrapper.size());
    const std::string layer = "model.layers." + std::to_string(integer("num_hidden_layers")) + ".";
    constexpr GgufNamePair kOfLayer[] = {{"mtp.layers.0.", ""},
                                         {"mtp.fc.", "eh_proj."},
                                         {"mtp.pre_fc_norm_embedding.", "enorm."},
                                         {"mtp.pre_fc_norm_hidden.", "hnorm."},
                                         {"mtp.norm.", "shared_head.norm."}};
    for (const GgufNamePair& pair : kOfLayer) {
      if (!name.starts_with(pair.hugging_face)) continue;
      return layer + std::string(pair.gguf) + name.substr(pair.hugging_face.size());
    }
    return name;
  }

  static Json text_config(const Json& file) {
    const Json* text = find(file, "text_config");
    return text != nullptr ? *text : file;
  }
  int64_t integer(const char* name) const { return find(config_, name)->to_number<int64_t>(); }

  std::string gguf_name(std::string name) const {
    if (case_.is_deepseek4()) return deepseek4_name(name);
    name = plain_name(name);
    if (name.starts_with("model.layers.")) name.replace(0, std::strlen("model.layers."), "blk.");
    if (const size_t at = name.find("post_attention_layernorm"); at != std::string::npos) {
      return name.substr(0, at) +
             (case_.has_post_attention_norm() ? "post_attention_norm.weight" : "ffn_norm.weight");
    }
    for (const GgufNamePair& pair : kGgufNames) {
      if (const size_t at = name.find(pair.hugging_face); at != std::string::npos) {
        return name.replace(at, pair.hugging_face.size(), pair.gguf);
      }
    }
    FAIL("no name for " << name);
    return name;
  }
  // Qwen's recurrent models multiply by their norms' weights and 1.
  std::string widened(const TensorView& tensor) const {
    const bool is_raised = case_.has_delta() && tensor.name.find("norm") != std::string::npos;
    std::string bytes;
    for (size_t i = 0; i < tensor.bytes.size() / dtype_bytes(tensor.dtype); ++i) {
      const float value = load_element(tensor.bytes.data(), tensor.dtype, i);
      bytes += GgufWriter::raw(is_raised ? value + 1.0f : value);
    }
    return bytes;
  }
  static uint32_t type_of(const TensorView& tensor) {
    return tensor.dtype == DType::kF32 ? kGgufF32 : kGgufBf16;
  }

  // `bytes` are elements of `type`, a plain one; the matrices of a stack are concatenated.
  void add_matrix(const std::string& name, const std::vector<uint64_t>& dimensions, uint32_t type,
                  const std::string& bytes) {
    const FormatCase format{.format = StoredFormat::kGguf,
                            .gguf_type = rounding_.type.value_or(type)};
    const auto block_columns = static_cast<size_t>(gguf_shape(format.gguf_type).columns);
    if (!rounding_.type || dimensions[0] % block_columns != 0) {
      file_.tensor_with(name, dimensions, type, bytes);
      return;
    }
    const DType dtype = type == kGgufF32 ? DType::kF32 : DType::kBF16;
    DenseMatrix dense{bytes.size() / dtype_bytes(dtype) / dimensions[0], dimensions[0], {}};
    const auto elements = std::as_bytes(std::span(bytes));
    for (size_t i = 0; i < dense.rows * dense.columns; ++i) {
      dense.values.push_back(static_cast<double>(load_element(elements.data(), dtype, i)));
    }
    const EncodedMatrix encoded = encode_matrix(format, dense);
    if (!rounding_.is_widened) {
      file_.tensor_with(name, dimensions, format.gguf_type, text_of(encoded.codes));
      return;
    }
    const std::vector<double> values = encoded.values().values;
    file_.floats(name, dimensions, {values.begin(), values.end()});
  }

  void add_tensor(const TensorView& tensor) {
    const std::string name = gguf_name(tensor.name);
    std::vector<uint64_t> dimensions(tensor.shape.rbegin(), tensor.shape.rend());
    REQUIRE_MESSAGE(!name.empty(), tensor.name);
    if (name.ends_with(".ssm_a")) return add_rates(tensor, name);
    if (tensor.dtype == DType::kI64) return add_integers(tensor, name, dimensions);
    if (dimensions.size() == 3) {  // a convolution: (channels, 1, taps)
      dimensions.push_back(1);
      file_.tensor_with(name, dimensions, kGgufF32, widened(tensor));
      return;
    }
    // Vectors and routers are F32 in every file.
    const bool is_f32 = case_.is_deepseek4() && is_f32_in_deepseek4(name);
    if (dimensions.size() == 1 || is_f32 || name.find("ffn_gate_inp") != std::string::npos) {
      file_.tensor_with(name, dimensions, kGgufF32, widened(tensor));
      return;
    }
    if (case_.splits_latent && name.find("attn_kv_b") != std::string::npos) {
      return split_latent(tensor, name);
    }
    std::string bytes = text_of(tensor.bytes);
    if (case_.is_interleaved && name.find("attn_q.") != std::string::npos) {
      bytes = interleaved(tensor, integer("num_attention_heads"));
    } else if (case_.is_interleaved && name.find("attn_k.") != std::string::npos) {
      bytes = interleaved(tensor, integer("num_key_value_heads"));
    }
    add_matrix(name, dimensions, type_of(tensor), bytes);
  }

  // The experts of each token id.
  void add_integers(const TensorView& tensor, const std::string& name,
                    const std::vector<uint64_t>& dimensions) {
    std::string bytes;
    for (size_t i = 0; i < tensor.bytes.size() / sizeof(int64_t); ++i) {
      int64_t number = 0;
      std::memcpy(&number, tensor.bytes.data() + i * sizeof number, sizeof number);
      bytes += GgufWriter::raw(static_cast<int32_t>(number));
    }
    file_.tensor_with(name, dimensions, kGgufI32, bytes);
  }

  // Minus the rates of decay, whose logarithms (1, 1, heads, 1) the folder has.
  void add_rates(const TensorView& tensor, const std::string& name) {
    std::vector<float> rates;
    const auto heads = static_cast<uint64_t>(tensor.shape[2]);
    for (uint64_t head = 0; head < heads; ++head) {
      rates.push_back(-exp_f32(load_element(tensor.bytes.data(), tensor.dtype, head)));
    }
    file_.floats(name, {1, heads, 1, 1}, rates);
  }

  void add_delta(const TensorView& tensor) {
    DeltaShape shape = delta_shape_of(config_);
    shape.tiles_values =
        std::string_view(case_.architecture).starts_with("qwen35") && shape.keys != shape.values;
    shape.joins_inputs = case_.joins_inputs;
    const std::string name = plain_name(tensor.name), marker = ".linear_attn.";
    const std::string part = name.substr(name.find(marker) + marker.size());
    for (const ConvertedTensor& converted : converted_delta(tensor, part, shape)) {
      // Blocks would take columns of two heads of 16 together.
      const bool is_kept = converted.dimensions.size() == 1 || converted.name == "ssm_out.weight" ||
                           converted.name == "ssm_conv1d.weight";
      const uint32_t type = converted.type == DType::kF32 ? kGgufF32 : kGgufBf16;
      if (is_kept) {
        file_.tensor_with(block_of(name) + converted.name, converted.dimensions, type,
                          converted.bytes);
      } else {
        add_matrix(block_of(name) + converted.name, converted.dimensions, type, converted.bytes);
      }
    }
  }

  // Rows [begin, begin + count) of each matrix of (experts, rows, columns).
  void add_experts(const TensorView& tensor, const std::string& name, size_t begin, size_t count) {
    const auto experts = static_cast<size_t>(tensor.shape[0]);
    const auto rows = static_cast<size_t>(tensor.shape[1]);
    const size_t row_bytes = tensor.bytes.size() / experts / rows;
    std::string bytes;
    for (size_t expert = 0; expert < experts; ++expert) {
      bytes +=
          text_of(tensor.bytes.subspan((expert * rows + begin) * row_bytes, count * row_bytes));
    }
    add_matrix(block_of(plain_name(tensor.name)) + name + ".weight",
               {static_cast<uint64_t>(tensor.shape[2]), count, experts}, type_of(tensor), bytes);
  }
  void add_joined_experts(const TensorView& tensor) {
    const auto rows = static_cast<size_t>(tensor.shape[1]) / 2;
    if (case_.joins_experts) return add_experts(tensor, "ffn_gate_up_exps", 0, 2 * rows);
    add_experts(tensor, "ffn_gate_exps", 0, rows);
    add_experts(tensor, "ffn_up_exps", rows, rows);
  }

  // LlamaModel.permute: the halves of each head alternate.
  static std::string interleaved(const TensorView& tensor, int64_t heads) {
    const int64_t half = tensor.shape[0] / heads / 2;
    const auto row_bytes = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
    std::string bytes;
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < 2 * half; ++i) {
        const int64_t row = head * 2 * half + i % 2 * half + i / 2;
        bytes += text_of(tensor.bytes.subspan(static_cast<size_t>(row) * row_bytes, row_bytes));
      }
    }
    return bytes;
  }

  // DeepseekV2Model: kv_b (heads, nope + value, rank) becomes k_b (heads, rank, nope), transposed,
  // and v_b (heads, value, rank).
  void split_latent(const TensorView& tensor, const std::string& name) {
    const auto heads = static_cast<size_t>(integer("num_attention_heads"));
    const auto nope = static_cast<size_t>(integer("qk_nope_head_dim"));
    const auto value = static_cast<size_t>(integer("v_head_dim"));
    const auto rank = static_cast<size_t>(tensor.shape[1]);
    const size_t size = dtype_bytes(tensor.dtype);
    std::string keys, values;
    for (size_t head = 0; head < heads; ++head) {
      const size_t begin = head * (nope + value) * rank;
      for (size_t i = 0; i < rank; ++i) {
        for (size_t row = 0; row < nope; ++row) {
          keys += text_of(tensor.bytes.subspan((begin + row * rank + i) * size, size));
        }
      }
      values += text_of(tensor.bytes.subspan((begin + nope * rank) * size, value * rank * size));
    }
    const std::string block = name.substr(0, name.find("attn_kv_b"));
    add_matrix(block + "attn_k_b.weight", {nope, rank, heads}, type_of(tensor), keys);
    add_matrix(block + "attn_v_b.weight", {rank, value, heads}, type_of(tensor), values);
  }

  // Stacks the tensors of single experts.
  void add_expert_stack(const TensorView& first) {
    const std::string marker = ".experts.0.";
    const size_t at = first.name.find(marker);
    std::string bytes;
    uint64_t count = 0;
    for (;; ++count) {
      const auto expert =
          checkpoint_->tensor(first.name.substr(0, at) + ".experts." + std::to_string(count) + "." +
                              first.name.substr(at + marker.size()));
      if (!expert.ok()) break;
      bytes += text_of(expert.value()->bytes);
    }
    const std::string part = first.name.substr(at + marker.size());  // "gate_proj.weight"
    add_matrix(
        block_of(plain_name(first.name)) + "ffn_" + stacked_name(part) + "_exps.weight",
        {static_cast<uint64_t>(first.shape[1]), static_cast<uint64_t>(first.shape[0]), count},
        type_of(first), bytes);
  }
  // MiniMaxM2Model: w1 is the gate, w3 up, w2 down.
  static std::string stacked_name(const std::string& part) {
    if (part.starts_with("w1")) return "gate";
    if (part.starts_with("w2")) return "down";
    return part.starts_with("w3") ? "up" : part.substr(0, part.find('_'));
  }
  // "blk.1."
  static std::string block_of(const std::string& name) {
    const size_t begin = std::strlen("model.layers.");
    return "blk." + name.substr(begin, name.find('.', begin) + 1 - begin);
  }

  // GptOssModel: the rows of gate and up are interleaved, and become separate stacks.
  void add_fused_experts(const TensorView& tensor) {
    const std::string block = block_of(tensor.name);
    const bool is_down = tensor.name.find("down_proj") != std::string::npos;
    const bool is_bias = tensor.name.ends_with("_bias");
    if (!is_bias && !tensor.name.ends_with("_blocks")) return;
    const size_t steps = is_down ? 1 : 2;
    for (size_t first = 0; first < steps; ++first) {
      const std::string name = block + (is_down      ? "ffn_down_exps"
                                        : first == 0 ? "ffn_gate_exps"
                                                     : "ffn_up_exps");
      if (is_bias) {
        add_fused_bias(tensor, name + ".bias", first, steps);
      } else {
        add_fused_blocks(tensor, name + ".weight", first, steps);
      }
    }
  }
  void add_fused_bias(const TensorView& tensor, const std::string& name, size_t first,
                      size_t step) {
    std::vector<float> values;
    const auto count = static_cast<size_t>(tensor.shape[0] * tensor.shape[1]);
    for (size_t i = first; i < count; i += step) {
      values.push_back(load_element(tensor.bytes.data(), tensor.dtype, i));
    }
    file_.floats(
        name,
        {static_cast<uint64_t>(tensor.shape[1]) / step, static_cast<uint64_t>(tensor.shape[0])},
        values);
  }
  // Blocks of 16 bytes: adjacent values become the two halves of a block.
  void add_fused_blocks(const TensorView& tensor, const std::string& name, size_t first,
                        size_t step) {
    const std::string stem = tensor.name.substr(0, tensor.name.size() - std::strlen("_blocks"));
    const TensorView& scales = *checkpoint_->tensor(stem + "_scales").value();
    const auto blocks = static_cast<size_t>(tensor.shape[2]);
    const auto rows = static_cast<size_t>(tensor.shape[0] * tensor.shape[1]);
    std::string bytes;
    for (size_t row = first; row < rows; row += step) {
      for (size_t block = row * blocks; block < (row + 1) * blocks; ++block) {
        bytes += static_cast<char>(scales.bytes[block]);
        for (size_t e = 0; e < 16; ++e) {
          const auto nibble = [&](size_t column) {
            const int pair = byte_of(tensor.bytes.data(), block * 16 + column / 2);
            return pair >> (column % 2 * 4) & 15;
          };
          bytes += static_cast<char>(nibble(e) | nibble(e + 16) << 4);
        }
      }
    }
    file_.tensor_with(name,
                      {blocks * 32, static_cast<uint64_t>(tensor.shape[1]) / step,
                       static_cast<uint64_t>(tensor.shape[0])},
                      kGgufMxfp4, bytes);
  }

  const GgufCase& case_;
  GgufRounding rounding_;
  Json config_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  GgufWriter file_;
};

// The file's bytes. Fails the test if it cannot be converted.
inline std::string convert_to_gguf(const std::string& folder, const GgufCase& subject,
                                   const GgufRounding& rounding = {}) {
  return GgufConverter(folder, subject, rounding).convert();
}

}  // namespace lockstep::testing
