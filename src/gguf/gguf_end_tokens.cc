#include "gguf/gguf_end_tokens.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

constexpr const char* kKeys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                 "tokenizer.ggml.eom_token_id"};

// A file has one id where generation_config.json has several. These are control tokens of the known
// architectures that occur only at the end of an answer.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",  // Llama 3: end of a turn
    "<|eom_id|>",  // end of a message that calls a tool
    "<|end_of_text|>",
    "<|im_end|>",                               // Qwen, Kimi
    "<|endoftext|>",                            // Qwen, GLM, gpt-oss
    "<|return|>",                               // gpt-oss: end of the final message
    "<|call|>",                                 // end of a message that calls a tool
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",  // DeepSeek
    "[EOS]",                                    // Kimi
};

constexpr int64_t kControlType = 3;  // in tokenizer.ggml.token_type

}  // namespace

Result<std::vector<int64_t>> gguf_end_tokens(const GgufFile& file) {
  std::set<int64_t> ends;
  for (const char* key : kKeys) {
    const auto id = TRY(file.integer(key));
    if (id && *id >= 0 && *id <= INT32_MAX) ends.insert(*id);
  }
  const auto texts = TRY(file.strings("tokenizer.ggml.tokens"));
  const auto types = TRY(file.integers("tokenizer.ggml.token_type"));
  for (size_t id = 0; id < std::min(texts.size(), types.size()); ++id) {
    const bool is_end =
        types[id] == kControlType &&
        std::find(std::begin(kEndTexts), std::end(kEndTexts), texts[id]) != std::end(kEndTexts);
    if (is_end) ends.insert(static_cast<int64_t>(id));
  }
  return std::vector<int64_t>(ends.begin(), ends.end());
}

}  // namespace lockstep
