#include "node/models/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "hub/model_cache.h"
#include "json/json_file.h"
#include "model/config/gguf_config.h"
#include "model/load/shape_model.h"
#include "weights/weight_source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void add_stop_id(ModelFolder& folder, int32_t id) {
  const auto& ids = folder.stop_ids;
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) folder.stop_ids.push_back(id);
}

// "eos_token_id": an id, a list of ids, or neither.
Status add_stop_ids(ModelFolder& folder, const Json& config, const fs::path& path) {
  const Json* value = find(config, "eos_token_id");
  if (!value || value->is_null()) return Ok{};
  const JsonArray alone{*value};
  for (const Json& entry : value->is_array() ? value->get_array() : alone) {
    const auto id = number_of<int32_t>(entry);
    if (!id || *id < 0) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: \"eos_token_id\" must be a token id or a list of them", path.string())};
    }
    add_stop_id(folder, *id);
  }
  return Ok{};
}

// An invalid value does not make the model unusable: that default is left unset.
SamplingDefaults read_sampling(const Json& config) {
  constexpr double kTemperatureMax = 100;
  constexpr int64_t kTopKMax = 1 << 30;
  SamplingDefaults defaults;
  const auto temperature = get_double(config, "temperature");
  const auto top_p = get_double(config, "top_p");
  const auto top_k = get_int(config, "top_k");
  const auto is_within = [](const auto& found, auto least, auto most) {
    return found.ok() && found.value() && *found.value() >= least && *found.value() <= most;
  };
  if (is_within(temperature, 0.0, kTemperatureMax)) {
    defaults.temperature = static_cast<float>(*temperature.value());
  }
  if (is_within(top_p, 0.0, 1.0)) defaults.top_p = static_cast<float>(*top_p.value());
  if (is_within(top_k, int64_t{-1}, kTopKMax)) {
    defaults.top_k = static_cast<int32_t>(std::max<int64_t>(*top_k.value(), 0));
  }
  return defaults;
}

Status read_generation_config(ModelFolder& folder, const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Ok{};
  const Json config = TRY(read_json_file(path));
  TRY(add_stop_ids(folder, config, path));
  folder.sampling = read_sampling(config);
  return Ok{};
}

// The template and the texts of the special tokens. Plain completion works without them, so their
// errors are kept for chat requests.
void set_chat(ModelFolder& folder, const Result<TemplateSource>& source) {
  if (!source.ok()) {
    folder.chat_format = source.error();
    return;
  }
  if (!source.value().text.empty()) folder.chat_format = ChatFormat::parse(source.value());
  const Json* end = source.value().tokens.if_contains("eos_token");
  if (!folder.tokenizer || !end || !end->is_string()) return;
  const auto ids = folder.tokenizer->encode(end->get_string(), {.parse_special = true});
  if (ids.size() == 1) add_stop_id(folder, ids.front());
}

// https://sbert.net/docs/package_reference/sentence_transformer/models.html#pooling
Result<Pooling> read_pooling(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Pooling::kLast;
  const Json config = TRY(read_json_file(path));
  const bool is_last = TRY(get_bool(config, "pooling_mode_lasttoken")).value_or(false);
  const bool is_mean = TRY(get_bool(config, "pooling_mode_mean_tokens")).value_or(false);
  if (is_last != is_mean) return is_last ? Pooling::kLast : Pooling::kMean;
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{}: only the pooling modes lasttoken and mean_tokens are supported, one "
                  "of them",
                  path.string())};
}

// "models/stories260K/" and "models/stories260K" are one name; "." is the folder's own. A hub's
// model has the hub's name.
std::string folder_name(const fs::path& path) {
  if (const std::string repository = repository_of_path(path); !repository.empty()) {
    return repository;
  }
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(path, error);
  return (error ? path : absolute).filename().string();
}

bool has_tokenizer(const fs::path& path) {
  std::error_code error;
  constexpr const char* kNames[] = {"tokenizer.json", "tekken.json", "tokenizer.model",
                                    "tiktoken.model"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return fs::exists(path / name, error); });
}

Result<ModelFolder> read_gguf_model(const fs::path& path) {
  ModelFolder model;
  model.name = gguf_model_name(path);
  const GgufModel file = TRY(GgufModel::open(path));
  const auto config = gguf_config(file);
  if (!config.ok()) {
    return Error{config.error().code, fmt::format("{}: {}", path.string(), config.error().message)};
  }
  TRY(add_stop_ids(model, TRY(parse_large_json(config.value())), path));
  const auto tokenizer = TRY(file.metadata().string("tokenizer.ggml.model"));
  if (tokenizer && *tokenizer != "none") model.tokenizer = TRY(Tokenizer::load(path));
  set_chat(model, read_template_source(path.string()));
  return model;
}

Result<ModelFolder> read_kind_of_model(const fs::path& path) {
  if (is_shape_model(path.string())) {  // random weights, without a tokenizer
    ModelFolder model;
    model.name = TRY(parse_shape_model(path.string())).shape;
    return model;
  }
  if (is_gguf_path(path)) return read_gguf_model(path);
  TRY(check_model_path(path));
  const fs::path config_path = path / "config.json";
  ModelFolder folder;
  folder.name = folder_name(path);
  const Json config = TRY(read_json_file(config_path));
  TRY(read_generation_config(folder, path / "generation_config.json"));
  TRY(add_stop_ids(folder, config, config_path));
  if (const Json* text_config = find(config, "text_config")) {
    TRY(add_stop_ids(folder, *text_config, config_path));
  }
  if (has_tokenizer(path)) folder.tokenizer = TRY(Tokenizer::load(path));
  set_chat(folder, read_template_source(path.string()));
  folder.pooling = TRY(read_pooling(path / "1_Pooling" / "config.json"));
  return folder;
}

}  // namespace

Result<ModelFolder> read_model_folder(const fs::path& path) {
  ModelFolder folder = TRY(read_kind_of_model(path));
  folder.card = read_model_card(path);
  return folder;
}

}  // namespace lockstep
