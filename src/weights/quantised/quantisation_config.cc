#include "weights/quantised/quantisation_config.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr ScaleBlock kDefaultBlock = {128, 128};
constexpr int64_t kBlockSideMax = 1 << 20;
constexpr size_t kBlocksMax = 16;
constexpr size_t kNameMax = 100;  // of names repeated in errors
constexpr std::string_view kKnownMethods[] = {
    "", "fp8", "mxfp4", "compressed-tensors", "modelopt", "modelopt_fp4", "gptq", "awq"};
// Formats of compressed-tensors whose tensors have the names of formats that lockstep reads.
constexpr std::string_view kUnknownFormats[] = {"marlin-24", "sparse-24-bitmask", "sparse-bitmask"};

template <class Names>
bool is_among(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Error unknown(std::string_view quantisation) {
  return {ErrorCode::kUnsupported,
          "the quantisation \"" + std::string(quantisation.substr(0, kNameMax)) +
              "\" is unknown here; supported are: " + kSupportedQuantisations};
}

Result<std::string> string_field(const Json& object, std::string_view key) {
  auto text = get_string(object, key);
  if (!text.ok()) {
    return Error{ErrorCode::kCorrupt, "quantization_config: " + text.error().message};
  }
  return text.value().value_or("");
}

// Wrappers of multimodal models may store it with the language model.
const Json* find_object(const Json& config, std::string_view key) {
  if (const Json* top = find(config, key); top != nullptr && top->is_object()) return top;
  const Json* text_config = find(config, "text_config");
  const Json* inner = text_config == nullptr ? nullptr : find(*text_config, key);
  return inner != nullptr && inner->is_object() ? inner : nullptr;
}

Status add_block(const Json* block, QuantisationConfig& result) {
  if (block == nullptr || block->is_null()) return Ok{};
  const JsonArray* sides = block->if_array();
  if (sides != nullptr && sides->size() == 2 && result.fp8_blocks.size() < kBlocksMax) {
    const int64_t* rows = (*sides)[0].if_int64();
    const int64_t* columns = (*sides)[1].if_int64();
    const auto is_side = [](const int64_t* side) {
      return side != nullptr && *side > 0 && *side <= kBlockSideMax;
    };
    if (is_side(rows) && is_side(columns)) {
      result.fp8_blocks.push_back({*rows, *columns});
      return Ok{};
    }
  }
  return Error{ErrorCode::kCorrupt, "quantization_config: a block of weights is " +
                                        dump_json(*block) + ", not a pair of sizes"};
}

// compressed-tensors gives the block of each group of layers.
Status add_group_blocks(const Json& quantisation, QuantisationConfig& result) {
  const Json* groups = find(quantisation, "config_groups");
  if (groups == nullptr || !groups->is_object()) return Ok{};
  for (const auto& member : groups->get_object()) {
    const Json* weights = find(member.value(), "weights");
    if (weights != nullptr) TRY(add_block(find(*weights, "block_structure"), result));
  }
  return Ok{};
}

Status check_awq(const Json& quantisation) {
  const std::string version = TRY(string_field(quantisation, "version"));
  if (version.empty() || version == "gemm" || version == "GEMM") return Ok{};
  return unknown("awq " + version);
}

}  // namespace

Result<QuantisationConfig> read_quantisation_config(const Json& config) {
  QuantisationConfig result;
  if (const Json* quantisation = find_object(config, "quantization_config")) {
    result.method = TRY(string_field(*quantisation, "quant_method"));
    if (!is_among(result.method, kKnownMethods)) return unknown(result.method);
    const std::string format = TRY(string_field(*quantisation, "format"));
    if (is_among(format, kUnknownFormats)) return unknown(format);
    if (result.method == "awq") TRY(check_awq(*quantisation));
    result.has_gptq_v2_zero_points =
        TRY(string_field(*quantisation, "checkpoint_format")) == "gptq_v2";
    TRY(add_block(find(*quantisation, "weight_block_size"), result));
    TRY(add_group_blocks(*quantisation, result));
  }
  // mlx_lm writes it under both names.
  if (const Json* quantisation = find_object(config, "quantization")) {
    result.mlx = TRY(MlxQuantisation::read(*quantisation));
  }
  if (result.fp8_blocks.empty()) result.fp8_blocks.push_back(kDefaultBlock);
  return result;
}

}  // namespace lockstep
