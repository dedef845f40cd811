#include "chat/template_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files/mapped_file.h"
#include "gguf/gguf_model.h"
#include "json/json_file.h"

namespace lockstep {
namespace {

constexpr std::string_view kTokenNames[] = {"bos_token", "eos_token", "pad_token", "unk_token",
                                            "sep_token", "cls_token", "mask_token"};

// The same tokens in a GGUF file, by their ids.
struct TokenKey {
  std::string_view name;
  std::string_view key;
};
constexpr TokenKey kGgufTokenKeys[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"sep_token", "tokenizer.ggml.seperator_token_id"},  // the format's spelling
    {"cls_token", "tokenizer.ggml.cls_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"}};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string_view string_in(const Json& json) {
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
void read_templates(const Json& config, TemplateSource& source) {
  const Json* field = find(config, "chat_template");
  if (field && field->is_string()) source.text = string_in(*field);
  if (!field || !field->is_array()) return;
  for (const Json& entry : field->get_array()) {
    const Json* name = find(entry, "name");
    const Json* text = find(entry, "template");
    if (!text || !text->is_string()) continue;
    const std::string_view known = name && name->is_string() ? string_in(*name) : "";
    if (known == "default" || source.text.empty()) source.text = string_in(*text);
    if (known == "tool_use") source.tool_text = string_in(*text);
  }
}

// Null if there is no such file.
Result<Json> read_json_if_there(const std::string& path) {
  if (!exists(path)) return Json();
  return read_json_file(path);
}

Result<JsonObject> tokens_of(const GgufFile& file) {
  JsonObject tokens;
  const auto texts = TRY(file.strings("tokenizer.ggml.tokens"));
  for (const TokenKey& token : kGgufTokenKeys) {
    const auto id = TRY(file.integer(token.key));
    if (!id || *id < 0 || static_cast<uint64_t>(*id) >= texts.size()) continue;
    tokens[token.name] = texts[static_cast<size_t>(*id)];
  }
  return tokens;
}

Result<TemplateSource> read_gguf_metadata(const GgufFile& file) {
  TemplateSource source;
  source.text = TRY(file.string("tokenizer.chat_template")).value_or("");
  source.tool_text = TRY(file.string("tokenizer.chat_template.tool_use")).value_or("");
  source.tokens = TRY(tokens_of(file));
  return source;
}

Result<TemplateSource> read_gguf_source(const std::string& path) {
  const auto bytes = TRY(MappedFile::open(gguf_first_part(path)));
  const auto file = GgufFile::parse(bytes.bytes());
  if (!file.ok()) return Error{file.error().code, path + ": " + file.error().message};
  auto source = read_gguf_metadata(file.value());
  if (source.ok()) return source;
  return Error{source.error().code, path + ": " + source.error().message};
}

Result<TemplateSource> read_folder_source(const std::string& folder) {
  const std::string text_path = folder + "/chat_template.jinja";
  const std::string tool_path = folder + "/additional_chat_templates/tool_use.jinja";
  const Json config = TRY(read_json_if_there(folder + "/tokenizer_config.json"));
  TemplateSource source;
  source.tokens = tokens_of(config);
  for (const auto& token :
       tokens_of(TRY(read_json_if_there(folder + "/special_tokens_map.json")))) {
    source.tokens.insert(token);  // keeps existing tokens
  }
  if (exists(text_path)) {
    source.text = TRY(read_small_file(text_path));
    if (exists(tool_path)) source.tool_text = TRY(read_small_file(tool_path));
    return source;
  }
  read_templates(config, source);
  if (source.text.empty()) {
    read_templates(TRY(read_json_if_there(folder + "/chat_template.json")), source);
  }
  return source;
}

}  // namespace

Result<TemplateSource> read_template_source(const std::string& model) {
  return is_gguf_path(model) ? read_gguf_source(model) : read_folder_source(model);
}

Result<ModelTemplate> parse_model_template(const TemplateSource& source) {
  ModelTemplate model{TRY(ChatTemplate::parse(source.text)), source.tokens, std::nullopt};
  if (!source.tool_text.empty()) model.tool_template = TRY(ChatTemplate::parse(source.tool_text));
  return model;
}

Result<ModelTemplate> load_model_template(const std::string& path) {
  const bool is_model = is_folder(path) || is_gguf_path(path);
  if (!is_model && !exists(path)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no {}", path)};
  }
  if (!is_model) return parse_model_template({TRY(read_small_file(path)), "", {}});
  const TemplateSource source = TRY(read_template_source(path));
  if (!source.text.empty()) return parse_model_template(source);
  if (is_gguf_path(path)) {
    return Error{ErrorCode::kNotFound, path + ": it has no tokenizer.chat_template"};
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{} has no chat_template.jinja and no chat_template in a "
                           "tokenizer_config.json or chat_template.json",
                           path)};
}

}  // namespace lockstep
