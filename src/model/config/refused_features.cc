#include "model/config/refused_features.h"

#include <string>

#include "model/architectures/architecture.h"

namespace lockstep {
namespace {

// A key that has this value or is missing.
Status expect_text(const Json& file, std::string_view key, std::string_view expected) {
  const std::string value = TRY(get_string(file, key)).value_or(std::string(expected));
  if (value == expected) return Ok{};
  return unsupported(
      fmt::format("\"{}\": \"{:.100}\" is not supported, only {} is", key, value, expected));
}

Status expect_flag(const Json& file, std::string_view key, bool expected) {
  if (TRY(get_bool(file, key)).value_or(expected) == expected) return Ok{};
  return unsupported(fmt::format("\"{}\": {} is not supported yet", key, !expected));
}

Status expect_none(const Json& file, std::string_view key) {
  const int64_t value = TRY(get_int(file, key)).value_or(0);
  if (value == 0) return Ok{};
  return unsupported(fmt::format("\"{}\" is {}, only 0 is supported", key, value));
}

// Linear attention in some of the layers is a 0 in MiniMax's list.
Status refuse_linear_attention(const Json& file) {
  const Json* types = find(file, "attn_type_list");
  if (!types || types->is_null()) return Ok{};
  if (!types->is_array()) return corrupt("\"attn_type_list\" must be an array");
  for (const Json& type : types->get_array()) {
    if (type != 1) {
      return unsupported(
          fmt::format("\"attn_type_list\" has the type {}, only 1 is supported", dump_json(type)));
    }
  }
  return Ok{};
}

Status refuse_in_experts(const Json& file) {
  TRY(expect_text(file, "moe_router_activation_func", "sigmoid"));
  TRY(expect_text(file, "scoring_func", "sigmoid"));
  TRY(expect_flag(file, "use_routing_bias", true));
  return expect_none(file, "shared_intermediate_size");
}

Status refuse_in_gemma(const Json& file) {
  return expect_text(file, "hidden_activation", "gelu_pytorch_tanh");
}

}  // namespace

Status refuse_unknown_features(const Json& file, const Architecture& architecture) {
  TRY(expect_flag(file, "mlp_bias", false));
  if (architecture.has_own_full_layers) return refuse_in_gemma(file);
  const std::string act = TRY(get_string(file, "hidden_act")).value_or("silu");
  if (act != "silu" && act != "swish") {
    return unsupported(
        fmt::format("\"hidden_act\": \"{:.100}\" is not supported, only silu is", act));
  }
  TRY(refuse_linear_attention(file));
  if (architecture.decays_channels) TRY(expect_flag(file, "mla_use_nope", true));
  if (architecture.has_streams) TRY(expect_flag(file, "mhc", true));
  if (architecture.gates_attention) TRY(expect_flag(file, "attn_output_gate", true));
  if (architecture.has_indexer) TRY(expect_flag(file, "rope_interleave", true));
  if (architecture.joins_head_norms) TRY(expect_text(file, "qk_norm_type", "per_layer"));
  if (architecture.sparse.scores == RouterForm::kRootSoftplus) {
    return expect_text(file, "scoring_func", "sqrtsoftplus");
  }
  const bool is_sigmoid = architecture.sparse.feed_forward == FeedForward::kExperts &&
                          architecture.sparse.scores == RouterForm::kSigmoid;
  return is_sigmoid ? refuse_in_experts(file) : Status(Ok{});
}

}  // namespace lockstep
