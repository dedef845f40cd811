// The parts of a model, a folder or a .gguf file, that the node itself needs; workers read the
// weights. Only reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_format.h"
#include "engine/engine.h"
#include "node/models/model_card.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// The model maker's sampling defaults: generation_config.json.
struct SamplingDefaults {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;  // 0: all
};

// Null: the model has no chat template. An error: why its template cannot be used.
using ModelChatFormat = Result<std::shared_ptr<const ChatFormat>>;

struct ModelFolder {
  std::string name;                            // the folder's last component, or the file's stem
  std::shared_ptr<const Tokenizer> tokenizer;  // null if there is no tokenizer file
  ModelChatFormat chat_format = std::shared_ptr<const ChatFormat>();
  // All ids that end a text: eos_token_id of generation_config.json and of config.json, and the
  // eos_token of tokenizer_config.json. Each once, in this order.
  std::vector<int32_t> stop_ids;
  SamplingDefaults sampling;
  // 1_Pooling/config.json of sentence-transformers; the last token if that is missing.
  Pooling pooling = Pooling::kLast;
  ModelCard card{};
};

// kNotFound: no such folder or file, or the folder holds no config.json.
Result<ModelFolder> read_model_folder(const std::filesystem::path& path);

}  // namespace lockstep
