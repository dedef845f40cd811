#include "node/model_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "json/json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kConfigBytesMax = 16u << 20;

Result<Json> read_config(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot read {}: {}", path.string(), error.message())};
  }
  if (bytes > kConfigBytesMax) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} has {} bytes; {} are the most", path.string(),
                                                  bytes, kConfigBytesMax)};
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot read {}: {}", path.string(), strerror(errno))};
  }
  auto json = parse_json(text);
  if (!json.ok()) {
    return Error{json.error().code, fmt::format("{}: {}", path.string(), json.error().message)};
  }
  return json;
}

// An id, a list of ids, or neither; a multimodal model may have it with its text model.
Result<std::vector<int32_t>> read_stop_ids(const Json& config, const fs::path& path) {
  std::vector<int32_t> ids;
  const Json* value = find(config, "eos_token_id");
  const Json* text = find(config, "text_config");
  if (!value && text) value = find(*text, "eos_token_id");
  if (!value || value->is_null()) return ids;
  const JsonArray alone{*value};
  for (const Json& id : value->is_array() ? value->get_array() : alone) {
    boost::system::error_code error;
    ids.push_back(id.to_number<int32_t>(error));
    if (error || ids.back() < 0) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: \"eos_token_id\" must be a token id or a list of them", path.string())};
    }
  }
  return ids;
}

// "models/stories260K/" and "models/stories260K" are one name; "." is the folder's own.
std::string folder_name(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(path, error);
  return (error ? path : absolute).filename().string();
}

}  // namespace

Result<ModelFolder> read_model_folder(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no model folder {}", path.string())};
  }
  const fs::path config_path = path / "config.json";
  if (!fs::exists(config_path, error)) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is no model: it holds no config.json", path.string())};
  }
  ModelFolder folder;
  folder.name = folder_name(path);
  const Json config = TRY(read_config(config_path));
  const fs::path generation_path = path / "generation_config.json";
  if (fs::exists(generation_path, error)) {
    folder.stop_ids = TRY(read_stop_ids(TRY(read_config(generation_path)), generation_path));
  }
  if (folder.stop_ids.empty()) folder.stop_ids = TRY(read_stop_ids(config, config_path));
  if (fs::exists(path / "tokenizer.json", error)) folder.tokenizer = TRY(Tokenizer::load(path));
  return folder;
}

}  // namespace lockstep
