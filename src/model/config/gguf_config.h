// Expresses the configuration of a GGUF model as a Hugging Face config.json, so that one parser
// (config.h) reads and checks both kinds of model. Sources: llama.cpp, conversion/*.py (what is
// written) and src/models/*.cpp (defaults for missing keys).
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "gguf/gguf_model.h"

namespace lockstep {

// The text of a config.json, with "eos_token_id" for all tokens that end an answer. kUnsupported
// names a feature that would change results and is not computed; kCorrupt names the key.
Result<std::string> gguf_config(const GgufModel& model);
Result<std::string> read_gguf_config(const std::filesystem::path& path);

}  // namespace lockstep
