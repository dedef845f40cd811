#include "model/config/gguf_gemma.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/config_fields.h"
#include "tensor/ggml_blocks.h"

namespace lockstep {
namespace {

using Marks = std::vector<bool>;  // (layers): has a window

// The only value that layers with a window have, or those without; nullopt if they differ.
Result<std::optional<int64_t>> value_of_kind(const GgufFields& fields, std::string_view name,
                                             const Marks& windowed, bool has_window) {
  const std::vector<int64_t> values = TRY(fields.of_layers(name, windowed.size()));
  std::optional<int64_t> found;
  for (size_t layer = 0; layer < windowed.size(); ++layer) {
    if (windowed[layer] != has_window) continue;
    if (found && *found != values[layer]) return std::optional<int64_t>();
    found = values[layer];
  }
  return found;
}

Status write_heads(const GgufModel& model, const GgufFields& fields, const Marks& windowed,
                   JsonObject& json) {
  const auto of_windows = TRY(value_of_kind(fields, "attention.head_count_kv", windowed, true));
  const auto of_others = TRY(value_of_kind(fields, "attention.head_count_kv", windowed, false));
  if (!of_windows || !of_others) {
    return unsupported("key/value heads that differ between layers of one kind are not supported");
  }
  json["num_key_value_heads"] = *of_windows;
  json["num_global_key_value_heads"] = *of_others;
  json["head_dim"] = TRY(fields.required_integer("attention.key_length_swa"));
  json["global_head_dim"] = TRY(fields.required_integer("attention.key_length"));
  const auto full = std::find(windowed.begin(), windowed.end(), false) - windowed.begin();
  json["attention_k_eq_v"] = model.tensor(fmt::format("blk.{}.attn_v.weight", full)) == nullptr;
  return Ok{};
}

// The pairs of a head without a window that turn: the divisors of all others are 1e30.
Result<double> turning_part(const GgufModel& model) {
  const GgufTensor* tensor = model.tensor("rope_freqs.weight");
  if (tensor == nullptr) return 1.0;
  const size_t count = tensor->bytes.size() / sizeof(float);
  if (tensor->type_id != static_cast<uint32_t>(GgmlType::kF32) || count == 0 || count > kSizeMax) {
    return unsupported("rope_freqs.weight must be F32 numbers");
  }
  size_t turning = 0;
  for (size_t pair = 0; pair < count; ++pair) {
    float divisor = 0;
    std::memcpy(&divisor, tensor->bytes.data() + pair * sizeof(float), sizeof(float));
    const bool turns = divisor == 1;
    if ((!turns && !(divisor >= 1e20f)) || (turns && turning < pair)) {
      return unsupported(
          fmt::format("rope_freqs.weight divides the frequency of pair {} by {}: only 1 for the "
                      "first pairs, and then 1e30, is supported",
                      pair, divisor));
    }
    if (turns) ++turning;
  }
  return static_cast<double>(turning) / static_cast<double>(count);
}

Status write_angles(const GgufModel& model, const GgufFields& fields, JsonObject& json) {
  const double full = TRY(fields.number("rope.freq_base")).value_or(1'000'000);
  const double windowed = TRY(fields.number("rope.freq_base_swa")).value_or(10'000);
  const double part = TRY(turning_part(model));
  JsonObject of_full{{"rope_type", "proportional"}, {"rope_theta", full}};
  of_full["partial_rotary_factor"] = part;
  json["rope_parameters"] = JsonObject{
      {"full_attention", std::move(of_full)},
      {"sliding_attention", JsonObject{{"rope_type", "default"}, {"rope_theta", windowed}}}};
  return Ok{};
}

// Layers that attend to keys and values of earlier ones may have twice the width.
Status write_widths(const GgufFields& fields, int64_t layers, JsonObject& json) {
  const int64_t shared = TRY(fields.integer("attention.shared_kv_layers")).value_or(0);
  const std::vector<int64_t> widths =
      TRY(fields.of_layers("feed_forward_length", static_cast<size_t>(layers)));
  const bool is_double = shared > 0 && shared < layers && widths.back() == 2 * widths.front();
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t factor = is_double && layer >= layers - shared ? 2 : 1;
    if (widths[static_cast<size_t>(layer)] == factor * widths.front()) continue;
    return unsupported(fmt::format("layer {} is {} wide, which is not supported after {}", layer,
                                   widths[static_cast<size_t>(layer)], widths.front()));
  }
  json["intermediate_size"] = widths.front();
  json["num_kv_shared_layers"] = shared;
  json["use_double_wide_mlp"] = is_double;
  return Ok{};
}

Status write_experts(const GgufFields& fields, JsonObject& json) {
  const int64_t experts = TRY(fields.integer("expert_count")).value_or(0);
  json["enable_moe_block"] = experts > 0;
  if (experts == 0) return Ok{};
  json["num_experts"] = experts;
  json["top_k_experts"] = TRY(fields.required_integer("expert_used_count"));
  json["moe_intermediate_size"] = TRY(fields.required_integer("expert_feed_forward_length"));
  return Ok{};
}

}  // namespace

Status write_gemma(const GgufModel& model, const GgufFields& fields, int64_t layers,
                   JsonObject& json) {
  const Marks windowed = TRY(fields.layer_pattern("attention.sliding_window_pattern", layers, 6));
  json["layer_types"] = words_of(windowed, "sliding_attention", "full_attention");
  json["sliding_window"] = TRY(fields.required_integer("attention.sliding_window"));
  json["hidden_activation"] = "gelu_pytorch_tanh";
  json["hidden_size_per_layer_input"] =
      TRY(fields.integer("embedding_length_per_layer_input")).value_or(0);
  const auto cap = TRY(fields.number("final_logit_softcapping"));
  if (cap) json["final_logit_softcapping"] = *cap;
  TRY(write_heads(model, fields, windowed, json));
  TRY(write_angles(model, fields, json));
  TRY(write_widths(fields, layers, json));
  return write_experts(fields, json);
}

}  // namespace lockstep
