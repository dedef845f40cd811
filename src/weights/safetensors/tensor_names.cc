#include "weights/safetensors/tensor_names.h"

#include <algorithm>

namespace lockstep {
namespace {

struct Naming {
  std::string_view asked;   // prefix of a name in the classes of language models
  std::string_view stored;  // its counterpart in the checkpoint
};

constexpr std::string_view kModel = "model.";
constexpr std::string_view kEmbedding = "embed_tokens.";
constexpr Naming kNamings[] = {
    {"", ""},                             // "model.layers.0"
    {"", "language_model."},              // "language_model.model.layers.0"
    {"model.", "model.language_model."},  // "model.language_model.layers.0"
    {"model.", "language_model."},        // "language_model.layers.0"
    {"model.", ""},                       // "layers.0"
};
// DeepSeek V4's own names: "layers.0", with these for what no layer has.
constexpr Naming kDeepseekNames[] = {{"model.embed_tokens", "embed"}, {"lm_head", "head"}};

std::string join(std::string_view a, std::string_view b, std::string_view c = "") {
  return std::string(a).append(b).append(c);
}

// Applies the naming to a stem. Stems outside "model." ("lm_head") stay unchanged if only "model."
// is renamed.
std::string renamed(std::string_view stem, std::string_view asked, std::string_view stored) {
  if (!stem.starts_with(asked)) return std::string(stem);
  return join(stored, stem.substr(asked.size()));
}

// MLX's own name for what is published under one with this ending: streams and recurrent layers of
// GLM-5.3, streams, routers and shared experts of DeepSeek V4.
std::optional<std::string> mlx_name(std::string_view name) {
  constexpr Naming kEndings[] = {
      {".hc_attn_fn", ".attn_hc.fn"},
      {".hc_attn_base", ".attn_hc.base"},
      {".hc_attn_scale", ".attn_hc.scale"},
      {".hc_ffn_fn", ".ffn_hc.fn"},
      {".hc_ffn_base", ".ffn_hc.base"},
      {".hc_ffn_scale", ".ffn_hc.scale"},
      {".hc_head_fn", ".hc_head.fn"},
      {".hc_head_base", ".hc_head.base"},
      {".hc_head_scale", ".hc_head.scale"},
      {".ffn.gate.bias", ".ffn.gate.e_score_correction_bias"},
      {".shared_experts.w1", ".shared_experts.gate_proj"},
      {".shared_experts.w2", ".shared_experts.down_proj"},
      {".shared_experts.w3", ".shared_experts.up_proj"},
      {".self_attn.f_a_proj", ".self_attn.forget_gate.f_a_proj"},
      {".self_attn.f_b_proj", ".self_attn.forget_gate.f_b_proj"},
      {".self_attn.A_log", ".self_attn.forget_gate.A_log"},
      {".self_attn.dt_bias", ".self_attn.forget_gate.dt_bias"},
  };
  for (const Naming& ending : kEndings) {
    if (!name.ends_with(ending.asked)) continue;
    return join(name.substr(0, name.size() - ending.asked.size()), ending.stored);
  }
  return std::nullopt;
}

// MLX's name for a module of the draft layer, which it keeps apart: "mtp.0.block.mlp.gate".
std::string draft_name(std::string_view module) {
  if (module == "shared_head.norm") return "mtp.0.norm";
  const bool is_own = module == "enorm" || module == "hnorm" || module == "eh_proj";
  return join("mtp.0.", is_own ? "" : "block.", module);
}

// MLX's own names, for modules of Kimi Linear and those above.
void add_mlx_names(std::vector<std::string>& stems) {
  constexpr std::string_view kExperts = ".block_sparse_moe.", kConvolution = "_conv1d";
  constexpr std::string_view kRouter = ".gate";
  const size_t count = stems.size();
  for (size_t i = 0; i < count; ++i) {
    std::string stem = stems[i];
    if (const auto other = mlx_name(stem)) stems.push_back(*other);
    if (stem.ends_with(kConvolution)) {
      stem.resize(stem.size() - kConvolution.size());
      stems.push_back(stem + "_conv.conv");
    }
    const size_t at = stem.find(kExperts);
    if (at == std::string::npos) continue;
    stem.replace(at, kExperts.size(), ".mlp.");
    stems.push_back(stem);
    // The router's bias stands next to it.
    if (stem.ends_with(kRouter)) stems.push_back(stem.substr(0, stem.size() - kRouter.size()));
  }
}

// A draft layer in files of its own has the names that it has in the model's, or those of mlx-vlm's
// converters (mlx_vlm/speculative/drafters, *_mtp/split.py), some with nothing before a module.
std::vector<std::string> draft_stems(std::string_view stem, std::string_view prefix) {
  constexpr std::string_view kPrefixes[] = {
      "mtp.",       "",       "language_model.mtp.", "model.language_model.mtp.",
      "model.mtp.", "model.", "model.mtp_block."};
  std::vector<std::string> stems;
  for (const Naming& naming : kNamings) {
    stems.push_back(renamed(stem, naming.asked, naming.stored));
  }
  if (!stem.starts_with(prefix)) return stems;
  const std::string_view module = stem.substr(prefix.size());
  // MLX's own names are known by endings that begin with a dot.
  std::vector<std::string> modules = {join(".", module)};
  if (module == "shared_head.norm") modules.emplace_back(".shared_head_norm");
  add_mlx_names(modules);
  for (const std::string& dotted : modules) {
    const std::string_view own = std::string_view(dotted).substr(1);
    for (const std::string_view other : kPrefixes) stems.push_back(join(other, own));
    // DeepSeek V4 numbers its layers, "0.attn.wkv"; the converters of DSpark call them stages.
    const size_t digits = std::min(own.find_first_not_of("0123456789"), own.size());
    if (digits == 0 || digits == own.size()) continue;
    const std::string_view alone = own.substr(digits + 1);
    stems.push_back(join("stages.", own));
    stems.push_back(join("decoder.", alone));
    stems.emplace_back(alone);
  }
  return stems;
}

bool has_prefix(std::span<const TensorView> tensors, std::string_view prefix) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorView& tensor) { return tensor.name.starts_with(prefix); });
}

// "a.experts.7.gate_proj" -> "a", "gate_proj".
struct ExpertStem {
  std::string_view layer;
  std::string_view projection;
};

std::optional<ExpertStem> parse_expert_stem(std::string_view stem, int stack_index) {
  if (stack_index < 0) return std::nullopt;
  const std::string expert = ".experts." + std::to_string(stack_index) + ".";
  const size_t position = stem.find(expert);
  if (position == std::string_view::npos) return std::nullopt;
  return ExpertStem{stem.substr(0, position), stem.substr(position + expert.size())};
}

}  // namespace

TensorNames::TensorNames(std::span<const TensorView> tensors) {
  for (const Naming& naming : kNamings) {
    const std::string embedding = renamed(join(kModel, kEmbedding), naming.asked, naming.stored);
    if (!has_prefix(tensors, embedding)) continue;
    asked_prefix_ = naming.asked;
    stored_prefix_ = naming.stored;
    break;
  }
  if (has_prefix(tensors, join(kDeepseekNames[0].stored, "."))) asked_prefix_ = kModel;
  find_draft_layer(tensors);
}

// A draft layer that is kept apart follows the last layer in the names that are asked for.
void TensorNames::find_draft_layer(std::span<const TensorView> tensors) {
  for (const std::string_view root : {"", "language_model."}) {
    if (!has_prefix(tensors, join(root, "mtp.0.block."))) continue;
    int layers = 0;
    while (has_prefix(tensors, layer_prefix(layers))) ++layers;
    draft_root_ = root;
    draft_prefix_ = join(kModel, "layers.", std::to_string(layers) + ".");
  }
}

std::string TensorNames::layer_prefix(int layer) const {
  return renamed(join(kModel, "layers.", std::to_string(layer) + "."), asked_prefix_,
                 stored_prefix_);
}

std::optional<JoinedStem> TensorNames::joined_convolution(std::string_view stem) {
  constexpr std::string_view kParts[] = {"q_conv1d", "k_conv1d", "v_conv1d"};
  for (size_t part = 0; part < std::size(kParts); ++part) {
    if (!stem.ends_with(kParts[part])) continue;
    return JoinedStem{join(stem.substr(0, stem.size() - kParts[part].size()), "conv1d"), part,
                      std::size(kParts)};
  }
  return std::nullopt;
}

TensorNames TensorNames::of_draft_layer(std::string_view prefix) {
  TensorNames names;
  names.alone_prefix_ = prefix;
  return names;
}

std::vector<std::string> TensorNames::stored(std::string_view stem) const {
  if (!alone_prefix_.empty()) return draft_stems(stem, alone_prefix_);
  std::vector<std::string> stems = {std::string(stem)};
  if (!draft_prefix_.empty() && stem.starts_with(draft_prefix_)) {
    stems.push_back(join(draft_root_, draft_name(stem.substr(draft_prefix_.size()))));
  }
  std::string other = renamed(stem, asked_prefix_, stored_prefix_);
  if (other != stem) stems.push_back(std::move(other));
  for (const Naming& own : kDeepseekNames) {
    if (stem == own.asked) stems.emplace_back(own.stored);
  }
  add_mlx_names(stems);
  return stems;
}

std::string_view stacked_projection(std::string_view projection) {
  if (projection == "w1") return "gate_proj";
  if (projection == "w2") return "down_proj";
  return projection == "w3" ? "up_proj" : projection;
}

std::vector<std::string> expert_stack_stems(std::string_view stem, int stack_index) {
  const auto expert = parse_expert_stem(stem, stack_index);
  if (!expert) return {};
  const std::string_view projection = stacked_projection(expert->projection);
  return {join(expert->layer, ".switch_mlp.", projection),
          join(expert->layer, ".experts.switch_glu.", projection),
          join(expert->layer, ".experts.", projection)};
}

bool is_bare_matrix(std::string_view stem) {
  return stem.ends_with(".hc_attn_fn") || stem.ends_with(".hc_ffn_fn") ||
         stem.ends_with(".hc_head_fn") || stem.ends_with(".index_kpool_compress_gate");
}

std::optional<FusedExpertStem> fused_expert_stem(std::string_view stem, int stack_index) {
  const auto expert = parse_expert_stem(stem, stack_index);
  if (!expert) return std::nullopt;
  using Rows = FusedExpertStem::Rows;
  if (expert->projection == "down_proj") {
    return FusedExpertStem{join(expert->layer, ".experts.down_proj"), Rows::kAll};
  }
  if (expert->projection != "gate_proj" && expert->projection != "up_proj") return std::nullopt;
  return FusedExpertStem{join(expert->layer, ".experts.gate_up_proj"),
                         expert->projection == "gate_proj" ? Rows::kEven : Rows::kOdd};
}

}  // namespace lockstep
