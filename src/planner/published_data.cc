// The file of published speeds: models as configs, points as the cost of a token.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "json/json.h"
#include "model/load/model_summary.h"
#include "model/load/speed_model.h"
#include "planner/check.h"

namespace lockstep {
namespace {

constexpr size_t kPointsMax = 10'000;
constexpr int kNodesMax = 1'024;

Error bad_published_data(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

Result<const Json*> need(const Json& json, std::string_view key, std::string_view what) {
  const Json* found = find(json, key);
  if (!found)
    return bad_published_data(fmt::format("{} of the published speeds needs \"{}\"", what, key));
  return found;
}

Result<double> need_number(const Json& json, std::string_view key, std::string_view what) {
  const Json& value = *TRY(need(json, key, what));
  const double number = value.is_number() ? value.to_number<double>() : 0;
  if (!(number > 0 && number < 1e9)) {
    return bad_published_data(fmt::format("\"{}\" of {} must be a positive number", key, what));
  }
  return number;
}

// Converts the file's description of a shape to a config.json.
Result<std::string> config_text(const Json& shape, std::string_view name) {
  JsonObject config{{"max_position_embeddings", 4096},
                    {"rms_norm_eps", 1e-6},
                    {"rope_theta", 1e4},
                    {"tie_word_embeddings", false}};
  const auto copy = [&](const Json& from, std::string_view key, std::string_view to) -> Status {
    const Json& value = *TRY(need(from, key, name));
    if (!value.is_int64())
      return bad_published_data(fmt::format("\"{}\" of {} must be an integer", key, name));
    config[to] = value;
    return Ok{};
  };
  TRY(copy(shape, "layers", "num_hidden_layers"));
  TRY(copy(shape, "hidden", "hidden_size"));
  TRY(copy(shape, "heads", "num_attention_heads"));
  TRY(copy(shape, "vocab", "vocab_size"));
  const bool has_experts = find(shape, "experts") != nullptr;
  if (has_experts) {
    TRY(copy(shape, "experts_active", "num_experts_per_tok"));
    TRY(copy(shape, "expert_ffn", "moe_intermediate_size"));
  }
  if (const Json* mla = find(shape, "mla")) {
    TRY(copy(*mla, "q_lora", "q_lora_rank"));
    TRY(copy(*mla, "kv_lora", "kv_lora_rank"));
    TRY(copy(*mla, "rope", "qk_rope_head_dim"));
    TRY(copy(*mla, "nope", "qk_nope_head_dim"));
    TRY(copy(*mla, "v", "v_head_dim"));
    TRY(copy(shape, "heads", "num_key_value_heads"));
    TRY(copy(shape, "experts", "n_routed_experts"));
    TRY(copy(shape, "shared_experts", "n_shared_experts"));
    TRY(copy(shape, "dense_layers", "first_k_dense_replace"));
    TRY(copy(shape, "dense_ffn", "intermediate_size"));
    config["architectures"] = JsonArray{"DeepseekV3ForCausalLM"};
    for (const char* one : {"n_group", "topk_group", "moe_layer_freq"}) config[one] = 1;
    config["scoring_func"] = "sigmoid";
    config["norm_topk_prob"] = true;
    return dump_json(config);
  }
  TRY(copy(shape, "kv_heads", "num_key_value_heads"));
  TRY(copy(shape, "head_dim", "head_dim"));
  if (has_experts) {
    TRY(copy(shape, "experts", "num_experts"));
    TRY(copy(shape, "expert_ffn", "intermediate_size"));
    config["architectures"] = JsonArray{"Qwen3MoeForCausalLM"};
    config["decoder_sparse_step"] = 1;
    config["norm_topk_prob"] = true;
  } else {
    TRY(copy(shape, "ffn", "intermediate_size"));
    config["architectures"] = JsonArray{"LlamaForCausalLM"};
  }
  return dump_json(config);
}

struct Shape {
  ModelConfig config;
  ModelSummary summary;
};

Result<Shape> read_shape(const Json& models, const std::string& name) {
  const Json& json = *TRY(need(models, name, "\"models\""));
  auto config = parse_config(TRY(config_text(json, name)));
  if (!config.ok()) {
    return bad_published_data(
        fmt::format("the shape of {} is not a valid model: {}", name, config.error().message));
  }
  auto summary = TRY(summarise(config.value(), nullptr));
  return Shape{std::move(config.value()), std::move(summary)};
}

Status read_bits(const Json& point, std::string_view what, PublishedPoint& target) {
  const Json& bits = *TRY(need(point, "bits_per_weight", what));
  if (bits.is_object()) {
    target.expert_bits = TRY(need_number(bits, "experts", what));
    target.other_bits = TRY(need_number(bits, "rest", what));
  } else {
    target.expert_bits = target.other_bits = TRY(need_number(point, "bits_per_weight", what));
  }
  return Ok{};
}

double latent_parameters(const ModelConfig& config) {
  return static_cast<double>(config.latent.rows()) * config.hidden * config.layers;
}

void add_costs(const Shape& shape, PublishedPoint& point) {
  double cut = 0, head = 0, whole = 0;
  for (const ClassSummary& part : shape.summary.classes) {
    const bool is_expert = part.weight_class == WeightClass::kExperts;
    const double bits = is_expert ? point.expert_bits : point.other_bits;
    const double bytes = static_cast<double>(part.count.token_parameters) * bits / 8;
    if (part.weight_class == WeightClass::kHead) {
      head += bytes;
    } else if (is_whole(part.weight_class)) {
      whole += bytes;
    } else {
      cut += bytes;
    }
  }
  const double latents = latent_parameters(shape.config) * point.other_bits / 8;
  const double layers = shape.config.layers, nodes = point.nodes;
  const bool is_alone = point.nodes == 1;
  point.kernels = token_costs(shape.config, {}).kernels;
  point.bytes = (cut - latents) / nodes + latents + head + whole;
  point.exchanges = is_alone ? 0 : 2 * layers;
  point.own_bytes = (cut + head) / nodes + whole;
  point.own_latent_bytes = latents - latents / nodes;
  point.own_exchanges = is_alone ? 0 : 2 * layers;
  point.own_latent_exchanges = is_alone || latents == 0 ? 0 : layers;
}

}  // namespace

Result<PublishedData> parse_published(std::string_view text) {
  const Json json = TRY(parse_json(text));
  PublishedData data;
  const Json& node = *TRY(need(json, "node", "the file"));
  constexpr double kGigabytesPerS = 1e3;  // to bytes per microsecond
  data.bandwidth_bytes_per_us =
      TRY(need_number(node, "memory_bandwidth_gb_s", "\"node\"")) * kGigabytesPerS;
  const Json& models = *TRY(need(json, "models", "the file"));
  const Json& measured = *TRY(need(json, "measured", "the file"));
  if (!measured.is_array() || measured.get_array().empty() ||
      measured.get_array().size() > kPointsMax) {
    return bad_published_data(
        fmt::format("\"measured\" must be a list of 1 to {} points", kPointsMax));
  }
  std::map<std::string, Shape> shapes;
  for (const Json& entry : measured.get_array()) {
    const std::string what = fmt::format("point {}", data.points.size() + 1);
    PublishedPoint& point = data.points.emplace_back();
    point.model = TRY(get_string(entry, "model")).value_or("");
    point.measured_tok_s = TRY(need_number(entry, "tokens_per_s", what));
    const double nodes = TRY(need_number(entry, "nodes", what));
    if (nodes != static_cast<int>(nodes) || nodes > kNodesMax) {
      return bad_published_data(
          fmt::format("\"nodes\" of {} must be a whole number up to {}", what, kNodesMax));
    }
    point.nodes = static_cast<int>(nodes);
    TRY(read_bits(entry, what, point));
    auto shape = shapes.find(point.model);
    if (shape == shapes.end()) {
      shape = shapes.emplace(point.model, TRY(read_shape(models, point.model))).first;
    }
    add_costs(shape->second, point);
  }
  return data;
}

}  // namespace lockstep
