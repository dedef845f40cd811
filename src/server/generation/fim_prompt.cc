#include "server/generation/fim_prompt.h"

#include <array>
#include <optional>

namespace lockstep {
namespace {

// One family's form. `order` is the layout: P, S and M are the tokens, p and s the texts.
struct FimForm {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view middle;  // empty: the prefix comes last
  std::string_view order;
  std::string_view before_prefix{};  // text
};

constexpr FimForm kForms[] = {
    // Qwen coders, CodeGemma. https://github.com/QwenLM/Qwen3-Coder
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "PpSsM"},
    // StarCoder 1 and 2. https://huggingface.co/bigcode/starcoder
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "PpSsM"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "PpSsM"},  // SantaCoder
    // DeepSeek coders. https://github.com/deepseek-ai/DeepSeek-Coder
    {"<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>",
     "PpSsM"},
    // Code Llama. https://github.com/meta-llama/codellama
    {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", "PpSsM", " "},
    // Codestral: mistral-common, encode_fim().
    {"[PREFIX]", "[SUFFIX]", "", "SsPp"},
    // GLM 4.5.
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "PpSsM"},
};

// A model writes these to start another file, or to mark the middle as complete.
constexpr std::string_view kEnds[] = {"<|fim_pad|>", "<|repo_name|>",     "<|file_sep|>",
                                      "<fim_pad>",   "<file_sep>",        "<|endoftext|>",
                                      "\u2581<EOT>", "<|file_separator|>"};

std::optional<int32_t> special_id(const Tokenizer& tokenizer, std::string_view name) {
  const std::vector<int32_t> ids = tokenizer.encode(name, {.parse_special = true});
  if (ids.size() != 1 || !tokenizer.is_special(ids.front())) return std::nullopt;
  return ids.front();
}

const FimForm* form_of(const Tokenizer& tokenizer) {
  for (const FimForm& form : kForms) {
    const bool has_all = special_id(tokenizer, form.prefix) && special_id(tokenizer, form.suffix) &&
                         (form.middle.empty() || special_id(tokenizer, form.middle));
    if (has_all) return &form;
  }
  return nullptr;
}

std::vector<PromptText> pieces_of(const FimForm& form, std::string_view prefix,
                                  std::string_view suffix) {
  std::vector<PromptText> pieces;
  for (const char part : form.order) {
    switch (part) {
      case 'P':
        pieces.push_back({form.prefix, true});
        break;
      case 'S':
        pieces.push_back({form.suffix, true});
        break;
      case 'M':
        pieces.push_back({form.middle, true});
        break;
      case 'p':
        if (!form.before_prefix.empty()) pieces.push_back({form.before_prefix, false});
        pieces.push_back({prefix, false});
        break;
      default:
        pieces.push_back({suffix, false});
    }
  }
  return pieces;
}

}  // namespace

bool has_fim(const Tokenizer& tokenizer) {
  return form_of(tokenizer) != nullptr;
}

ApiResult<FimPrompt> fim_prompt(const Tokenizer& tokenizer, std::string_view prefix,
                                std::string_view suffix) {
  const FimForm* form = form_of(tokenizer);
  if (form == nullptr) {
    return unsupported_field(
        "suffix",
        "\"suffix\" needs a model that was trained to fill in the middle: this "
        "one has no tokens for it");
  }
  FimPrompt made;
  made.ids =
      tokenizer.encode_pieces(pieces_of(*form, prefix, suffix), tokenizer.bos_id().has_value());
  for (const std::string_view name : kEnds) {
    if (const auto id = special_id(tokenizer, name)) made.stop_ids.push_back(*id);
  }
  return made;
}

}  // namespace lockstep
