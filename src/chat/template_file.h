// Finds the chat template of a model: a .jinja file, or a folder with chat_template.jinja or a
// tokenizer_config.json. Used by the server when a model is loaded and by `lockstep template`.
#pragma once

#include <string>

#include "base/result.h"
#include "chat/chat_template.h"
#include "json/json.h"

namespace lockstep {

struct ModelTemplate {
  ChatTemplate chat_template;
  JsonObject tokens;  // bos_token, eos_token... as texts, from tokenizer_config.json
};

// kNotFound if there is none; kCorrupt if it cannot be parsed.
Result<ModelTemplate> load_model_template(const std::string& path);

}  // namespace lockstep
