#include "model/config/draft_config.h"

#include <fmt/core.h>

#include "model/config/config_fields.h"

namespace lockstep {
namespace {

Result<int> predicting_layers(const Json& file) {
  for (const char* key : {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"}) {
    const int64_t layers = TRY(get_int(file, key)).value_or(0);
    if (layers < 0 || layers > kLayersMax) {
      return corrupt(fmt::format("\"{}\" is {}, which is invalid", key, layers));
    }
    if (layers > 0) return static_cast<int>(layers);
  }
  return 0;
}

// The draft layer of Qwen3.8-Flash-Next has constants of its own.
Status check_draft_constants(const Json& file, const ModelConfig& config) {
  if (!config.architecture->indexes_blocks || config.predicting_layers == 0) return Ok{};
  if (TRY(get_bool(file, "mtp_use_dedicated_embeddings")).value_or(false)) {
    return unsupported("\"mtp_use_dedicated_embeddings\": true is not supported");
  }
  const Json* draft = find(file, "mtp");
  if (!draft || !draft->is_object()) return Ok{};
  const double theta = TRY(positive(*draft, "rope_theta", config.rope_theta));
  if (theta == config.rope_theta) return Ok{};
  return unsupported(
      fmt::format("\"rope_theta\" is {} in \"mtp\" and {} in the model, others "
                  "than equal ones are not supported",
                  theta, config.rope_theta));
}

// DeepSeek V4 counts one predicting layer even so; the list of ratios has an entry for each.
Result<int> block_layers(const Json& file, const ModelConfig& config) {
  const Json* ratios = find(file, "compress_ratios");
  const auto listed = ratios && ratios->is_array() ? ratios->get_array().size() : 0;
  const auto layers = static_cast<int64_t>(listed) - config.layers;
  if (layers >= 1 && layers <= kDraftLayersMax) return static_cast<int>(layers);
  return unsupported(
      fmt::format("\"dspark_block_size\" needs 1 to {} layers after the model's in "
                  "\"compress_ratios\", there are {}",
                  kDraftLayersMax, layers));
}

Result<std::vector<int>> read_taps(const Json& file, const ModelConfig& config) {
  const Json* ids = find(file, "dspark_target_layer_ids");
  const auto count = ids && ids->is_array() ? static_cast<int64_t>(ids->get_array().size()) : 0;
  if (count == 0 || count > config.layers) {
    return corrupt("\"dspark_target_layer_ids\" must be a list of layers of the model");
  }
  std::vector<int> taps;
  for (const Json& id : ids->get_array()) {
    const int64_t* layer = id.if_int64();
    if (layer == nullptr || *layer < 0 || *layer >= config.layers) {
      return corrupt(fmt::format("\"dspark_target_layer_ids\" names a layer that is not one of {}",
                                 config.layers));
    }
    taps.push_back(static_cast<int>(*layer));
  }
  if (count * config.hidden <= kSizeMax) return taps;
  return corrupt(fmt::format("{} hidden states of {} columns are too large", count, config.hidden));
}

Result<DraftBlock> read_block(const Json& file, const ModelConfig& config) {
  DraftBlock block;
  block.size = TRY(size_or(file, "dspark_block_size", std::nullopt, kDraftBlockMax));
  block.rank = TRY(size_or(file, "dspark_markov_rank", std::nullopt));
  block.layers = TRY(block_layers(file, config));
  block.taps = TRY(read_taps(file, config));
  const int64_t noise = TRY(get_int(file, "dspark_noise_token_id")).value_or(-1);
  if (noise < 0 || noise >= config.vocab_size) {
    return corrupt(fmt::format("\"dspark_noise_token_id\" is not in the vocabulary of {} tokens",
                               config.vocab_size));
  }
  block.noise = static_cast<int>(noise);
  return block;
}

}  // namespace

Status read_draft(const Json& file, ModelConfig& config) {
  config.predicting_layers = TRY(predicting_layers(file));
  TRY(check_draft_constants(file, config));
  if (config.architecture->draft.first_of_block.empty()) return Ok{};
  if (!find(file, "dspark_block_size")) return Ok{};
  auto block = read_block(file, config);
  if (block.ok()) {
    config.draft_block = std::move(block.value());
  } else {  // the model can do without
    config.draft_problem = block.error().message;
  }
  return Ok{};
}

}  // namespace lockstep
