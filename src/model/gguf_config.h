// The configuration of a GGUF model in the words of Hugging Face's config.json, so that both kinds
// of model are read and checked by one parser (config.h). Facts: llama.cpp, conversion/*.py (what
// is written) and src/models/*.cpp (what is meant where nothing is written).
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "weights/gguf_model.h"

namespace lockstep {

// The text of a config.json, with "eos_token_id" for all tokens that end an answer. kUnsupported
// names what would change the numbers and is not computed; kCorrupt names the key.
Result<std::string> gguf_config(const GgufModel& model);
Result<std::string> read_gguf_config(const std::filesystem::path& path);

}  // namespace lockstep
