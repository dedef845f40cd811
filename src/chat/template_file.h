// Finds the chat template of a model: a .jinja file, a .gguf file, or the files of a model folder.
// Used by the node when a model is loaded and by `lockstep template`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/chat_template.h"
#include "json/json.h"

namespace lockstep {

// The chat settings in a model's files, not parsed yet.
struct TemplateSource {
  std::string text;       // of the template; empty: the model has none
  std::string tool_text;  // of the template for conversations with tools; empty: the same
  JsonObject tokens;      // bos_token, eos_token... as texts
};

// The template comes from chat_template.jinja (and additional_chat_templates/tool_use.jinja), else
// from "chat_template" in tokenizer_config.json or chat_template.json; the tokens come from
// tokenizer_config.json, else from special_tokens_map.json. A .gguf file has both in its metadata.
Result<TemplateSource> read_template_source(const std::string& model);

struct ModelTemplate {
  ChatTemplate chat_template;
  JsonObject tokens;
  std::optional<ChatTemplate> tool_template;  // replaces chat_template if there are tools
};

// kNotFound if there is none; kCorrupt if it cannot be parsed.
Result<ModelTemplate> load_model_template(const std::string& path);
Result<ModelTemplate> parse_model_template(const TemplateSource& source);

}  // namespace lockstep
