#include "gguf/gguf_end_tokens.h"

#include <algorithm>
#include <set>
#include <span>
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

// Gemma 4's, in whose files they may have other types.
constexpr std::string_view kGemmaEndTexts[] = {"<eos>", "<turn|>", "<|tool_response>"};

bool is_one_of(std::span<const std::string_view> known, std::string_view text) {
  return std::find(known.begin(), known.end(), text) != known.end();
}

}  // namespace

Result<std::vector<int64_t>> gguf_end_tokens(const GgufFile& file) {
  std::set<int64_t> ends;
  const auto add = [&ends](int64_t id) {
    if (id >= 0 && id <= INT32_MAX) ends.insert(id);
  };
  for (const char* key : kKeys) {
    const auto id = TRY(file.integer(key));
    if (id) add(*id);
  }
  for (const int64_t id : TRY(file.integers("tokenizer.ggml.eos_token_ids"))) add(id);
  const auto texts = TRY(file.strings("tokenizer.ggml.tokens"));
  const auto types = TRY(file.integers("tokenizer.ggml.token_type"));
  const bool is_gemma = TRY(file.string("tokenizer.ggml.model")) == "gemma4";
  for (size_t id = 0; id < texts.size(); ++id) {
    const bool is_control = id < types.size() && types[id] == kControlType;
    if ((is_control && is_one_of(kEndTexts, texts[id])) ||
        (is_gemma && is_one_of(kGemmaEndTexts, texts[id]))) {
      ends.insert(static_cast<int64_t>(id));
    }
  }
  return std::vector<int64_t>(ends.begin(), ends.end());
}

}  // namespace lockstep
