#include "chat/template_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>

#include "base/mapped_file.h"

namespace lockstep {
namespace {

constexpr std::string_view kTokenNames[] = {"bos_token", "eos_token", "pad_token", "unk_token",
                                            "sep_token", "cls_token", "mask_token"};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string_view text_of(const Json& json) {
  const auto& text = json.get_string();
  return {text.data(), text.size()};
}

// A token is written as a text or as an object with its "content".
JsonObject tokens_of(const Json& config) {
  JsonObject tokens;
  for (const std::string_view name : kTokenNames) {
    const Json* token = find(config, name);
    if (token && token->is_object()) token = find(*token, "content");
    if (token && token->is_string()) tokens[name] = *token;
  }
  return tokens;
}

// "chat_template" is a text, or a list of {"name", "template"}.
std::optional<std::string> template_of(const Json& config) {
  const Json* field = find(config, "chat_template");
  if (field && field->is_string()) return std::string(text_of(*field));
  if (!field || !field->is_array()) return std::nullopt;
  std::optional<std::string> chosen;
  for (const Json& entry : field->get_array()) {
    const Json* name = find(entry, "name");
    const Json* source = find(entry, "template");
    if (!source || !source->is_string()) continue;
    const bool is_default = name && name->is_string() && text_of(*name) == "default";
    if (is_default || !chosen) chosen = std::string(text_of(*source));
  }
  return chosen;
}

Result<std::string> read_file(const std::string& path) {
  const auto file = TRY(MappedFile::open(path));
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Result<ModelTemplate> load_folder(const std::string& folder) {
  const std::string config_path = folder + "/tokenizer_config.json";
  Json config;
  if (exists(config_path)) config = TRY(parse_json(TRY(read_file(config_path))));
  const std::string template_path = folder + "/chat_template.jinja";
  std::optional<std::string> source = template_of(config);
  if (exists(template_path)) source = TRY(read_file(template_path));
  if (!source) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} has no chat_template.jinja and no chat_template in a "
                             "tokenizer_config.json",
                             folder)};
  }
  return ModelTemplate{TRY(ChatTemplate::parse(*source)), tokens_of(config)};
}

}  // namespace

Result<ModelTemplate> load_model_template(const std::string& path) {
  if (is_folder(path)) return load_folder(path);
  if (!exists(path)) return Error{ErrorCode::kNotFound, fmt::format("there is no {}", path)};
  return ModelTemplate{TRY(ChatTemplate::parse(TRY(read_file(path)))), {}};
}

}  // namespace lockstep
