#include "model/config.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>

#include "base/mapped_file.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr size_t kConfigBytesMax = 16 << 20;
constexpr int64_t kSizeMax = 1 << 24;  // of any dimension; larger is a broken file

Error corrupt(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}
Error unsupported(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message)};
}

Result<int> size_or(const Json& object, std::string_view key, std::optional<int64_t> otherwise) {
  const auto value = TRY(get_int(object, key));
  if (!value && !otherwise) return corrupt(fmt::format("\"{}\" is missing", key));
  const int64_t size = value ? *value : *otherwise;
  if (size < 1 || size > kSizeMax) {
    return corrupt(fmt::format("\"{}\" is {}, it must be from 1 to {}", key, size, kSizeMax));
  }
  return static_cast<int>(size);
}

Result<double> positive(const Json& object, std::string_view key, std::optional<double> otherwise) {
  const auto value = TRY(get_double(object, key));
  if (!value && !otherwise) return corrupt(fmt::format("\"{}\" is missing", key));
  const double number = value ? *value : *otherwise;
  if (!(number > 0) || !std::isfinite(number)) {
    return corrupt(fmt::format("\"{}\" is {}, it must be a positive number", key, number));
  }
  return number;
}

Result<const Architecture*> read_architecture(const Json& config) {
  const Json* names = find(config, "architectures");
  if (!names || !names->is_array() || names->get_array().empty() ||
      !names->get_array()[0].is_string()) {
    return corrupt("\"architectures\" is missing");
  }
  const auto& text = names->get_array()[0].get_string();
  const std::string_view name(text.data(), text.size());
  if (const Architecture* found = find_architecture(name)) return found;
  std::string known;
  for (const Architecture* a : known_architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(a->name);
  }
  return unsupported(
      fmt::format("the architecture \"{}\" is unknown here; known are: {}", name, known));
}

// Newer files write rope_parameters {rope_theta, rope_type, ...}, older ones rope_theta and
// rope_scaling.
Status read_rope(const Json& file, ModelConfig& config) {
  const Json* parameters = find(file, "rope_parameters");
  const bool is_new = parameters && parameters->is_object();
  config.rope_theta = TRY(positive(is_new ? *parameters : file, "rope_theta", 10000.0));
  const Json* scaling = is_new ? parameters : find(file, "rope_scaling");
  if (!scaling || scaling->is_null()) return Ok{};
  if (!scaling->is_object()) return corrupt("\"rope_scaling\" must be an object or null");
  auto type = TRY(get_string(*scaling, "rope_type"));
  if (!type) type = TRY(get_string(*scaling, "type"));
  if (!type || *type == "default") return Ok{};
  if (*type != "llama3") {
    return unsupported(
        fmt::format("the rope scaling \"{}\" is unknown here; known is llama3", *type));
  }
  Llama3Rope rope;
  rope.factor = TRY(positive(*scaling, "factor", std::nullopt));
  rope.low_freq_factor = TRY(positive(*scaling, "low_freq_factor", std::nullopt));
  rope.high_freq_factor = TRY(positive(*scaling, "high_freq_factor", std::nullopt));
  rope.original_positions =
      TRY(positive(*scaling, "original_max_position_embeddings", std::nullopt));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return corrupt("\"high_freq_factor\" must be larger than \"low_freq_factor\"");
  }
  config.llama3_rope = rope;
  return Ok{};
}

// Things that would change the numbers and that the forward pass does not do.
Status refuse_unknown_features(const Json& file) {
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    if (TRY(get_bool(file, key)).value_or(false)) {
      return unsupported(fmt::format("\"{}\": true is not supported yet", key));
    }
  }
  for (const std::string_view key : {"quantization", "quantization_config"}) {
    const Json* value = find(file, key);
    if (value && !value->is_null()) {
      return unsupported(
          "the checkpoint is quantised, which is not supported yet; "
          "use its F32, F16 or BF16 form");
    }
  }
  const std::string act = TRY(get_string(file, "hidden_act")).value_or("silu");
  if (act != "silu" && act != "swish") {
    return unsupported(fmt::format("\"hidden_act\": \"{}\" is not supported, only silu is", act));
  }
  return Ok{};
}

}  // namespace

Result<ModelConfig> parse_config(std::string_view text) {
  const Json file = TRY(parse_json(text));
  if (!file.is_object()) return corrupt("it is not a JSON object");
  ModelConfig config;
  config.architecture = TRY(read_architecture(file));
  TRY(refuse_unknown_features(file));
  config.vocab_size = TRY(size_or(file, "vocab_size", std::nullopt));
  config.hidden = TRY(size_or(file, "hidden_size", std::nullopt));
  config.ffn = TRY(size_or(file, "intermediate_size", std::nullopt));
  config.layers = TRY(size_or(file, "num_hidden_layers", std::nullopt));
  config.heads = TRY(size_or(file, "num_attention_heads", std::nullopt));
  config.kv_heads = TRY(size_or(file, "num_key_value_heads", config.heads));
  config.head_dim = TRY(size_or(file, "head_dim", config.hidden / config.heads));
  config.positions_max = TRY(size_or(file, "max_position_embeddings", 2048));
  config.norm_epsilon = static_cast<float>(TRY(positive(file, "rms_norm_eps", 1e-6)));
  config.tied_embeddings = TRY(get_bool(file, "tie_word_embeddings")).value_or(false);
  if (config.heads % config.kv_heads != 0) {
    return corrupt(fmt::format("{} attention heads cannot share {} key/value heads evenly",
                               config.heads, config.kv_heads));
  }
  if (config.head_dim % 2 != 0 || config.head_dim > 512) {
    return unsupported(
        fmt::format("\"head_dim\" is {}, it must be even and at most 512", config.head_dim));
  }
  TRY(read_rope(file, config));
  return config;
}

Result<ModelConfig> read_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  const MappedFile file = TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > kConfigBytesMax) {
    return Error{ErrorCode::kCorrupt, path.string() + " is too large for a config.json"};
  }
  auto config = parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!config.ok()) {
    return Error{config.error().code, path.string() + ": " + config.error().message};
  }
  return config;
}

}  // namespace lockstep
