#include "model/config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/files/mapped_file.h"
#include "json/json.h"
#include "kernels/kernels.h"
#include "model/config/config_fields.h"
#include "model/config/draft_config.h"
#include "model/config/experts_config.h"
#include "model/config/full_attention_config.h"
#include "model/config/gguf_config.h"
#include "model/config/latent_config.h"
#include "model/config/recurrent_config.h"
#include "model/config/refused_features.h"
#include "model/config/rope_config.h"
#include "weights/weight_source.h"

namespace lockstep {
namespace {

// Published models have 20.
constexpr int64_t kStreamRoundsMax = 64;

// The first entry of "architectures"; empty if there is none.
std::string architecture_name(const Json& config) {
  const Json* names = find(config, "architectures");
  if (!names || !names->is_array() || names->get_array().empty()) return {};
  const Json& first = names->get_array()[0];
  return first.is_string() ? std::string(first.get_string()) : std::string();
}

// `text` is the text model's config, with its architecture or at least its type; it is `file`
// itself unless that is a multimodal model around it.
Result<const Architecture*> read_architecture(const Json& file, const Json& text) {
  const std::string name = architecture_name(text);
  const std::string type = TRY(get_string(text, "model_type")).value_or("");
  if (name.empty() && type.empty()) {
    return corrupt("\"architectures\" is missing, and so is \"model_type\"");
  }
  const Architecture* found = name.empty() ? find_model_type(type) : find_architecture(name);
  if (found) return found;
  std::string known;
  for (const Architecture* a : known_architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(a->name);
  }
  const std::string outer = &file == &text ? "" : architecture_name(file);
  return unsupported(fmt::format("the {} \"{:.100}\"{}{:.100} is unknown here; known are: {}",
                                 name.empty() ? "model type" : "architecture",
                                 name.empty() ? type : name, outer.empty() ? "" : " inside ", outer,
                                 known));
}

// Qwen's models have windows only if the file switches them on, which no other's needs to.
Result<bool> has_windows(const Json& file, const Architecture& architecture) {
  const bool is_qwen = architecture.name.starts_with("Qwen");
  const Json* key = find(file, "use_sliding_window");
  return !key ? !is_qwen : TRY(get_bool(file, "use_sliding_window")).value_or(false);
}

// Without "layer_types": gpt-oss has a window on every other layer, Qwen on those from
// "max_window_layers" on, the rest on all.
Status read_untyped_windows(const Json& file, int window, ModelConfig& config) {
  const int64_t first = TRY(get_int(file, "max_window_layers")).value_or(0);
  const bool alternates = config.architecture->sparse.gating == Gating::kClampedSwiglu;
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool has_window = alternates ? layer % 2 == 0 : layer >= first;
    if (has_window) config.traits[static_cast<size_t>(layer)].window = window;
  }
  return Ok{};
}

// The layers that look back only over a window.
Status read_windows(const Json& file, ModelConfig& config) {
  const int64_t window = TRY(get_int(file, "sliding_window")).value_or(0);
  if (window == 0 || !TRY(has_windows(file, *config.architecture))) return Ok{};
  if (window < 0 || window > kSizeMax) {
    return corrupt(fmt::format("\"sliding_window\" is {}, it must be positive", window));
  }
  constexpr LayerTypes kTypes{"layer_types", "layer", "full_attention", "sliding_attention"};
  const auto have_window = TRY(read_layer_types(file, kTypes, config.traits.size()));
  if (have_window.empty()) {
    if (config.full) return corrupt("\"layer_types\" is missing");
    return read_untyped_windows(file, static_cast<int>(window), config);
  }
  for (size_t layer = 0; layer < have_window.size(); ++layer) {
    if (have_window[layer]) config.traits[layer].window = static_cast<int>(window);
  }
  return Ok{};
}

Result<bool> has(Has what, const Json& file, std::string_view key) {
  const bool is_configured = TRY(get_bool(file, key)).value_or(false);
  return what == Has::kYes || (what == Has::kAsConfigured && is_configured);
}

bool is_latent(const ModelConfig& config) {
  return config.architecture->dense.mixer == Mixer::kLatentAttention;
}

// Parts that vary between checkpoints of one architecture.
Status read_options(const Json& file, ModelConfig& config) {
  const Architecture& architecture = *config.architecture;
  config.qkv_bias = TRY(has(architecture.qkv_bias, file, "attention_bias"));
  config.head_norms = TRY(has(architecture.head_norms, file, "use_qk_norm"));
  if (architecture.qkv_bias == Has::kNo && TRY(get_bool(file, "attention_bias")).value_or(false)) {
    return unsupported(
        fmt::format("\"attention_bias\": true is not supported for {}", architecture.name));
  }
  const int head_dim = is_latent(config) ? config.latent.rope : config.head_dim;
  if (!config.compressed) {
    config.rotary_dims = config.full ? head_dim : TRY(read_rotary_dims(file, head_dim));
  }
  const Json* cap = find(file, "final_logit_softcapping");
  if (cap && !cap->is_null()) {
    config.logit_cap =
        static_cast<float>(TRY(positive(file, "final_logit_softcapping", std::nullopt)));
  }
  return Ok{};
}

// Checks products of sizes that are valid alone; the rows and columns of matrices are ints.
Status check_sizes(const ModelConfig& config) {
  const int64_t widest = int64_t{config.head_dim} + config.value_dim + config.latent.nope;
  if (config.heads * widest > kSizeMax) {
    return corrupt(fmt::format("{} attention heads of {} elements are too large", config.heads,
                               config.head_dim));
  }
  return Ok{};
}

Status read_gate_limit(const Json& file, ModelConfig& config) {
  switch (config.architecture->sparse.gating) {
    case Gating::kSilu:
    case Gating::kGelu:
      return Ok{};
    case Gating::kClampedSwiglu:
      config.gate_limit = static_cast<float>(TRY(positive(file, "swiglu_limit", 7.0)));
      return Ok{};
    case Gating::kClippedSilu:
      config.gate_limit = static_cast<float>(TRY(positive(file, "swiglu_limit", std::nullopt)));
      return Ok{};
  }
  return Ok{};
}

Status read_streams(const Json& file, ModelConfig& config) {
  const bool are_mixed = config.architecture->mixes_streams;
  const std::string_view count = are_mixed ? "hc_count" : "hc_mult";
  config.streams.count = TRY(size_or(file, count, std::nullopt, kResidualStreamsMax));
  if (are_mixed) {
    config.streams.low_rank = TRY(size_or(file, "hc_lowrank", std::nullopt));
  } else {
    config.streams.rounds = TRY(size_or(file, "hc_sinkhorn_iters", std::nullopt, kStreamRoundsMax));
    config.streams.epsilon = static_cast<float>(TRY(positive(file, "hc_eps", std::nullopt)));
  }
  if (config.streams.count == 1) {
    return unsupported(fmt::format("\"{}\": 1 is not supported", count));
  }
  if (int64_t{config.streams.count} * config.hidden <= kSizeMax) return Ok{};
  return corrupt(fmt::format("{} residual streams of {} columns are too large",
                             config.streams.count, config.hidden));
}

// Models whose layers all have experts may leave it out.
Result<int> read_ffn(const Json& file, const Architecture& architecture) {
  const bool is_needed = architecture.sparse.feed_forward == FeedForward::kDense;
  if (is_needed || find(file, "intermediate_size") || !find(file, architecture.expert_width)) {
    return size_or(file, "intermediate_size", std::nullopt);
  }
  return size_or(file, architecture.expert_width, std::nullopt);
}

// The sizes and constants of the text model.
Result<ModelConfig> read_text_model(const Json& file, const Architecture& architecture) {
  ModelConfig config;
  config.architecture = &architecture;
  TRY(refuse_unknown_features(file, architecture));
  config.vocab_size = TRY(size_or(file, "vocab_size", std::nullopt));
  config.hidden = TRY(size_or(file, "hidden_size", std::nullopt));
  config.ffn = TRY(read_ffn(file, architecture));
  config.layers = TRY(size_or(file, "num_hidden_layers", std::nullopt, kLayersMax));
  config.heads = TRY(size_or(file, "num_attention_heads", std::nullopt));
  config.kv_heads = TRY(size_or(file, "num_key_value_heads", config.heads));
  if (!is_latent(config)) {
    config.head_dim = TRY(size_or(file, "head_dim", config.hidden / config.heads));
  }
  const int length = TRY(size_or(file, "model_max_length", 2048));  // Kimi Linear's name
  config.positions_max = TRY(size_or(file, "max_position_embeddings", length));
  config.norm_epsilon = static_cast<float>(TRY(positive(file, "rms_norm_eps", 1e-6)));
  if (config.heads % config.kv_heads != 0) {
    return corrupt(fmt::format("{} attention heads cannot share {} key/value heads evenly",
                               config.heads, config.kv_heads));
  }
  config.value_dim = config.head_dim;
  config.traits.resize(static_cast<size_t>(config.layers));
  TRY(read_latent(file, config));
  TRY(read_compressed(file, config));
  TRY(read_indexer(file, config));
  if (!is_latent(config) && (config.head_dim % 2 != 0 || config.head_dim > kHeadDimMax)) {
    return unsupported(fmt::format("\"head_dim\" is {}, it must be even and at most {}",
                                   config.head_dim, kHeadDimMax));
  }
  TRY(check_sizes(config));
  if (architecture.has_own_full_layers) TRY(read_full_attention(file, config));
  if (architecture.scales_embedding) {
    config.embedding_factor = std::sqrt(static_cast<float>(config.hidden));
  }
  TRY(read_options(file, config));
  TRY(read_block_index(file, config));
  TRY(read_experts(file, config));
  if (!config.full) TRY(read_rope(file, config));
  TRY(read_compressed_rope(file, config));
  TRY(read_gate_limit(file, config));
  if (architecture.has_streams) TRY(read_streams(file, config));
  config.attention_scale =
      architecture.scales_scores ? 1.0f / std::sqrt(static_cast<float>(config.head_dim)) : 1.0f;
  if (is_latent(config) && config.yarn_rope) {
    config.attention_scale *= static_cast<float>(config.yarn_rope->softmax_factor);
  }
  const bool has_other_windows = !architecture.recurrent.weights.empty() || config.compressed;
  if (!has_other_windows) TRY(read_windows(file, config));
  TRY(read_recurrent(file, config));
  if (config.full) TRY(read_layer_differences(file, config));
  TRY(read_ngrams(file, config));
  TRY(read_draft(file, config));
  resolve_traits(config);
  return config;
}

}  // namespace

const LayerTraits& ModelConfig::attention_layer() const {
  return *std::find_if(traits.begin(), traits.end(),
                       [](const LayerTraits& each) { return !each.is_recurrent(); });
}

int ModelConfig::reach() const {
  int most = 0;
  for (const LayerTraits& layer : traits) most = std::max(most, layer.state.reach);
  return most;
}

int ModelConfig::recurrent_layers(int begin, int end) const {
  return static_cast<int>(
      std::count_if(traits.begin() + begin, traits.begin() + end,
                    [](const LayerTraits& each) { return each.is_recurrent(); }));
}

Result<ModelConfig> parse_config(std::string_view contents) {
  const Json file = TRY(parse_large_json(contents));
  if (!file.is_object()) return corrupt("it is not a JSON object");
  const Json* inner = find(file, "text_config");
  const Json& text = inner && inner->is_object() ? *inner : file;
  const Architecture* architecture = TRY(read_architecture(file, text));
  ModelConfig config = TRY(read_text_model(text, *architecture));
  const Json* vision = find(file, "vision_config");
  config.has_vision = vision && vision->is_object();
  const auto tied = TRY(get_bool(text, "tie_word_embeddings"));
  config.tied_embeddings =
      tied ? *tied : TRY(get_bool(file, "tie_word_embeddings")).value_or(false);
  return config;
}

Result<ModelConfig> read_config(const std::filesystem::path& model) {
  if (is_gguf_path(model)) {
    auto config = parse_config(TRY(read_gguf_config(model)));
    if (config.ok()) return config;
    return Error{config.error().code, model.string() + ": " + config.error().message};
  }
  TRY(check_model_path(model));
  return read_config_file(model / "config.json");
}

Result<ModelConfig> read_config_file(const std::filesystem::path& path) {
  auto config = parse_config(TRY(read_small_file(path)));
  if (!config.ok()) {
    return Error{config.error().code, path.string() + ": " + config.error().message};
  }
  return config;
}

}  // namespace lockstep
