#include "model/config/rope_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/math.h"
#include "model/config/config_fields.h"

namespace lockstep {
namespace {

Result<Llama3Rope> read_llama3(const Json& scaling) {
  Llama3Rope rope;
  rope.factor = TRY(positive(scaling, "factor", std::nullopt));
  rope.low_freq_factor = TRY(positive(scaling, "low_freq_factor", std::nullopt));
  rope.high_freq_factor = TRY(positive(scaling, "high_freq_factor", std::nullopt));
  rope.original_positions =
      TRY(positive(scaling, "original_max_position_embeddings", std::nullopt));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return corrupt("\"high_freq_factor\" must be larger than \"low_freq_factor\"");
  }
  return rope;
}

// Longer contexts flatten the softmax: the correction that the paper's authors fitted.
double yarn_scale(double factor, double scale) {
  return factor > 1 ? 0.1 * scale * log_f64(factor) + 1 : 1;
}

Result<YarnRope> read_yarn(const Json& scaling) {
  YarnRope rope;
  rope.factor = TRY(positive(scaling, "factor", std::nullopt));
  rope.beta_fast = TRY(positive(scaling, "beta_fast", 32));
  rope.beta_slow = TRY(positive(scaling, "beta_slow", 1));
  rope.original_positions =
      TRY(positive(scaling, "original_max_position_embeddings", std::nullopt));
  rope.truncate = TRY(get_bool(scaling, "truncate")).value_or(true);
  const double scale = TRY(get_double(scaling, "mscale")).value_or(1);
  const double scale_all = TRY(get_double(scaling, "mscale_all_dim")).value_or(0);
  rope.attention_factor = yarn_scale(rope.factor, scale) / yarn_scale(rope.factor, scale_all);
  const double softmax = yarn_scale(rope.factor, scale_all);
  rope.softmax_factor = softmax * softmax;
  const auto given = TRY(get_double(scaling, "attention_factor"));
  if (given) rope.attention_factor = *given;
  if (!std::isfinite(rope.attention_factor) || rope.attention_factor <= 0) {
    return corrupt("the yarn scaling has an attention factor that is not positive");
  }
  return rope;
}

Status read_scaling(const Json& scaling, ModelConfig& config) {
  auto type = TRY(get_string(scaling, "rope_type"));
  if (!type) type = TRY(get_string(scaling, "type"));
  if (!type || *type == "default") return Ok{};
  if (*type == "llama3") {
    config.llama3_rope = TRY(read_llama3(scaling));
  } else if (*type == "yarn") {
    config.yarn_rope = TRY(read_yarn(scaling));
  } else {
    return unsupported(
        fmt::format("the rope scaling \"{}\" is unknown here; known are llama3 and yarn", *type));
  }
  const double beta = TRY(get_double(scaling, "llama_4_scaling_beta")).value_or(0);
  if (beta == 0) return Ok{};
  if (!std::isfinite(beta)) return corrupt("\"llama_4_scaling_beta\" must be a number");
  const auto positions = TRY(positive(scaling, "original_max_position_embeddings", std::nullopt));
  config.query_scaling = {beta, positions};
  return Ok{};
}

// Null if it is missing, null or empty.
Result<const Json*> rope_object(const Json& file, const char* key) {
  const Json* object = find(file, key);
  if (!object || object->is_null()) return nullptr;
  if (!object->is_object()) return corrupt(fmt::format("\"{}\" must be an object or null", key));
  for (const auto& member : object->get_object()) {
    if (!member.value().is_object()) continue;
    return unsupported(fmt::format("\"{}\" for each type of layer is not supported", key));
  }
  return object->get_object().empty() ? nullptr : object;
}

// Lockstep's own key, for files that have no other form (gguf_config.h).
Status read_factors(const Json& file, ModelConfig& config) {
  const Json* factors = find(file, "rope_frequency_factors");
  if (!factors || factors->is_null()) return Ok{};
  const auto pairs = static_cast<size_t>(config.rotary_dims / 2);
  if (!factors->is_array() || factors->get_array().size() != pairs) {
    return corrupt(fmt::format("\"rope_frequency_factors\" must be {} numbers", pairs));
  }
  for (const Json& factor : factors->get_array()) {
    const auto number = number_of<double>(factor);
    if (!number || !(*number > 0) || !std::isfinite(*number)) {
      return corrupt("\"rope_frequency_factors\" must be positive numbers");
    }
    config.rope_factors.push_back(*number);
  }
  return Ok{};
}

}  // namespace

// Newer files write rope_parameters {rope_theta, rope_type, ...}, older ones rope_theta and
// rope_scaling. Where a file has both, rope_scaling counts, which owners add to extend a model's
// context, and rope_theta is the first that is present in rope_scaling, rope_parameters and the
// file itself.
Status read_rope(const Json& file, ModelConfig& config) {
  TRY(read_factors(file, config));
  const Json* scaling = TRY(rope_object(file, "rope_scaling"));
  const Json* parameters = TRY(rope_object(file, "rope_parameters"));
  config.rope_theta = 10000;
  for (const Json* object : {&file, parameters, scaling}) {
    if (object) config.rope_theta = TRY(positive(*object, "rope_theta", config.rope_theta));
  }
  if (!scaling) scaling = parameters;
  return scaling ? read_scaling(*scaling, config) : Ok{};
}

Result<int> read_rotary_dims(const Json& file, int head_dim) {
  const auto given = TRY(get_int(file, "rotary_dim"));
  if (given) {
    if (*given > 0 && *given <= head_dim && *given % 2 == 0) return static_cast<int>(*given);
    return corrupt(
        fmt::format("\"rotary_dim\" is {}, it must be even and at most {}", *given, head_dim));
  }
  const Json* parameters = TRY(rope_object(file, "rope_parameters"));
  const double inner = parameters ? TRY(positive(*parameters, "partial_rotary_factor", 1.0)) : 1.0;
  const double part = TRY(positive(file, "partial_rotary_factor", inner));
  const int dims = static_cast<int>(head_dim * std::min(part, 2.0));
  if (part <= 1 && dims % 2 == 0) return dims;
  return corrupt(fmt::format("\"partial_rotary_factor\" is {}, which is invalid", part));
}

}  // namespace lockstep
