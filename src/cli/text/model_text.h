// How a model reads and writes text, found from its files: for `lockstep show`.
#pragma once

#include <optional>
#include <string>

#include "chat/template_facts.h"

namespace lockstep {

struct TokenizerFacts {
  std::string kind;     // "BPE, tokenizer.json"; empty: the model has none
  int tokens = 0;       // 0: unknown
  std::string problem;  // why lockstep cannot use it; empty if it can
};

TokenizerFacts tokenizer_facts(const std::string& model);
// Nullopt without a template. `model` is a folder or a .gguf file.
std::optional<TemplateFacts> chat_template_facts(const std::string& model);

}  // namespace lockstep
