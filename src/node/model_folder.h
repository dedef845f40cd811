// What the node itself needs to know of a model folder; the weights are the workers' business. Pure
// reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct ModelFolder {
  std::string name;                            // the folder's last component
  std::shared_ptr<const Tokenizer> tokenizer;  // null without a tokenizer.json
  // eos_token_id of generation_config.json, or of config.json where that has none.
  std::vector<int32_t> stop_ids;
};

// kNotFound: no such folder, or it holds no config.json.
Result<ModelFolder> read_model_folder(const std::filesystem::path& path);

}  // namespace lockstep
