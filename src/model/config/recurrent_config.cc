#include "model/config/recurrent_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/config_fields.h"

namespace lockstep {
namespace {

// Published models have 4.
constexpr int64_t kTapsMax = 8;
// Published models have 16 heads, n-grams of up to 3 tokens and 128 parts, each a matrix.
constexpr int kNgramHeadsMax = 64;
constexpr int kNgramSizeMax = 8;
constexpr int kNgramPartsMax = 1024;
// Published models have rows of 2,560 numbers together, and a state of 92,160.
constexpr int kNgramColumnsMax = 1 << 16;
constexpr int64_t kNgramStateMax = 1 << 22;
// Published models have 20 million rows of a head, and 320 million in all.
constexpr int64_t kHeadRowsMax = int64_t{1} << 28;
constexpr int64_t kPartRowsMax = int64_t{1} << 30;

Result<DeltaConfig> read_delta(const Json& file, const Architecture& architecture) {
  DeltaConfig delta;
  // GGUF files have them apart.
  delta.groups_inputs =
      architecture.has_grouped_delta && TRY(get_bool(file, "linear_groups_inputs")).value_or(true);
  delta.key_heads = TRY(size_or(file, "linear_num_key_heads", std::nullopt, kDeltaHeadsMax));
  delta.value_heads = TRY(size_or(file, "linear_num_value_heads", std::nullopt, kDeltaHeadsMax));
  delta.key_dim = TRY(size_or(file, "linear_key_head_dim", std::nullopt, kHeadDimMax));
  delta.value_dim = TRY(size_or(file, "linear_value_head_dim", std::nullopt, kHeadDimMax));
  delta.taps = TRY(size_or(file, "linear_conv_kernel_dim", std::nullopt, kTapsMax));
  const std::string gate = TRY(get_string(file, "output_gate_type")).value_or("swish");
  if (gate != "swish" && gate != "silu" && gate != "sigmoid") {
    return unsupported(fmt::format(
        "\"output_gate_type\": \"{:.100}\" is not supported, only swish, silu and sigmoid are",
        gate));
  }
  delta.gates_by_sigmoid = gate == "sigmoid";
  if (delta.value_heads % delta.key_heads != 0) {
    return corrupt(fmt::format("{} value heads cannot share {} key heads evenly", delta.value_heads,
                               delta.key_heads));
  }
  return delta;
}

// Kimi Linear and GLM-5.3 have them in an object.
Result<DeltaConfig> read_channel_delta(const Json& linear) {
  DeltaConfig delta{.decays_channels = true, .gates_by_sigmoid = true};
  delta.key_heads = TRY(size_or(linear, "num_heads", std::nullopt, kDeltaHeadsMax));
  delta.key_dim = TRY(size_or(linear, "head_dim", std::nullopt, kHeadDimMax));
  delta.taps = TRY(size_or(linear, "short_conv_kernel_size", std::nullopt, kTapsMax));
  delta.value_heads = delta.key_heads;
  delta.value_dim = delta.low_rank = delta.key_dim;
  delta.least_decay = static_cast<float>(TRY(get_double(linear, "gate_lower_bound")).value_or(0));
  if (delta.least_decay <= 0 && std::isfinite(delta.least_decay)) return delta;
  return corrupt(fmt::format("\"gate_lower_bound\" is {}, it must be negative", delta.least_decay));
}

// Kimi Linear's lists count from 1.
Status read_listed_layers(const Json& linear, ModelConfig& config) {
  std::vector<int> listed(config.traits.size(), 0);
  for (const char* key : {"kda_layers", "full_attn_layers"}) {
    const Json* layers = find(linear, key);
    if (!layers || !layers->is_array()) {
      return corrupt(fmt::format("\"{}\" must be an array of layers", key));
    }
    const bool is_recurrent = std::string_view(key) == "kda_layers";
    for (const Json& number : layers->get_array()) {
      const auto layer = number_of<int64_t>(number);
      if (!layer || *layer < 1 || *layer > config.layers) {
        return corrupt(fmt::format("\"{}\" names a layer that does not exist", key));
      }
      const auto index = static_cast<size_t>(*layer - 1);
      ++listed[index];
      if (is_recurrent) config.traits[index].mixer = config.architecture->recurrent.mixer;
    }
  }
  if (std::all_of(listed.begin(), listed.end(), [](int times) { return times == 1; })) return Ok{};
  return corrupt("\"kda_layers\" and \"full_attn_layers\" must name each layer once");
}

// Without "layer_types" every n-th layer has attention.
Status read_mixers(const Json& file, std::string_view attention, ModelConfig& config) {
  const LayerTypes types{"layer_types", "layer", attention, "linear_attention"};
  const auto are_recurrent = TRY(read_layer_types(file, types, config.traits.size()));
  const auto interval = static_cast<size_t>(TRY(size_or(file, "full_attention_interval", 4)));
  for (size_t layer = 0; layer < config.traits.size(); ++layer) {
    const bool is_recurrent =
        are_recurrent.empty() ? (layer + 1) % interval != 0 : are_recurrent[layer];
    if (is_recurrent) config.traits[layer].mixer = config.architecture->recurrent.mixer;
  }
  return Ok{};
}

// The only layer that has them; the list counts from 1.
Result<int> read_layer(const Json& file, const ModelConfig& config) {
  const Json* layers = find(file, "ple_layer_ids");
  const bool is_one = layers && layers->is_array() && layers->get_array().size() == 1;
  if (!is_one) {
    return unsupported("\"ple_layer_ids\" must be a list of one layer, others are not supported");
  }
  const auto layer = number_of<int64_t>(layers->get_array()[0]);
  if (layer && *layer >= 1 && *layer <= config.layers) return static_cast<int>(*layer - 1);
  return corrupt("\"ple_layer_ids\" names a layer that does not exist");
}

// The first one of a list.
Result<int> read_end_token(const Json& file, int vocab_size) {
  const Json* token = find(file, "eos_token_id");
  if (token && token->is_array() && !token->get_array().empty()) token = &token->get_array()[0];
  const auto number = token ? number_of<int64_t>(*token) : std::nullopt;
  if (number && *number >= 0 && *number < vocab_size) return static_cast<int>(*number);
  return corrupt("\"eos_token_id\" must be a token, since it ends the n-grams");
}

}  // namespace

Status read_recurrent(const Json& file, ModelConfig& config) {
  if (config.architecture->recurrent.weights.empty()) return Ok{};
  if (config.architecture->decays_channels) {
    const Json* linear = find(file, "linear_attn_config");
    if (!linear || !linear->is_object()) return corrupt("\"linear_attn_config\" is missing");
    config.delta = TRY(read_channel_delta(*linear));
    if (config.architecture->has_indexer) {
      TRY(read_mixers(file, "deepseek_sparse_attention", config));
    } else {
      TRY(read_listed_layers(*linear, config));
    }
    config.rotates_nothing = true;
  } else {
    config.delta = TRY(read_delta(file, *config.architecture));
    TRY(read_mixers(file, "full_attention", config));
  }
  const bool has_attention =
      std::any_of(config.traits.begin(), config.traits.end(),
                  [](const LayerTraits& layer) { return !layer.is_recurrent(); });
  if (has_attention) return Ok{};
  return unsupported("no layer has full attention, which is not supported");
}

Status read_ngrams(const Json& file, ModelConfig& config) {
  if (!config.architecture->has_ngrams) return Ok{};
  NgramConfig ngrams;
  ngrams.layer = TRY(read_layer(file, config));
  ngrams.size = TRY(size_or(file, "ngram_size", std::nullopt, kNgramSizeMax));
  if (ngrams.size < 2) return corrupt("\"ngram_size\" must be at least 2");
  const int of_length = TRY(size_or(file, "heads_per_ngram", std::nullopt, kNgramHeadsMax));
  ngrams.heads = (ngrams.size - 1) * of_length;
  const int columns = TRY(size_or(file, "ple_embed_dim", std::nullopt, kNgramColumnsMax));
  if (ngrams.heads > kNgramHeadsMax || columns % ngrams.heads != 0) {
    return unsupported(
        fmt::format("{} heads of n-grams, \"ple_embed_dim\" {}: at most {} heads, "
                    "which divide it, are supported",
                    ngrams.heads, columns, kNgramHeadsMax));
  }
  ngrams.row = columns / ngrams.heads;
  ngrams.taps = TRY(size_or(file, "ple_conv_kernel_size", std::nullopt, kTapsMax));
  const int64_t channels = int64_t{config.streams.count} * config.hidden;
  if (ngrams.past() * channels > kNgramStateMax) {
    return unsupported(fmt::format("{} past inputs of {} columns of n-grams are not supported",
                                   ngrams.past(), channels));
  }
  ngrams.parts = TRY(size_or(file, "split_ngram_parts", 1, kNgramPartsMax));
  ngrams.base = TRY(size_or(file, "ngram_vocab_size_base", std::nullopt, kHeadRowsMax));
  const int64_t unit = TRY(size_or(file, "make_ngram_vocab_size_divisible_by", 1));
  const int64_t used = used_rows(ngrams.base, ngrams.heads);
  const int64_t rows = (used + unit - 1) / unit * unit;
  if (rows % ngrams.parts != 0 || rows / ngrams.parts > kPartRowsMax || rows > INT32_MAX) {
    return unsupported(
        fmt::format("{} rows of n-grams in {} parts are not supported", rows, ngrams.parts));
  }
  ngrams.part_rows = static_cast<int>(rows / ngrams.parts);
  ngrams.end_token = TRY(read_end_token(file, config.vocab_size));
  config.ngrams = ngrams;
  config.traits[static_cast<size_t>(ngrams.layer)].adds_ngrams = true;
  return Ok{};
}

}  // namespace lockstep
