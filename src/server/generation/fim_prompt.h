// Prompts that ask for the text between two texts (fill in the middle), in the form of the model's
// family, which the names of its special tokens reveal. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/request/errors.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct FimPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> stop_ids;  // tokens that end the middle, besides those that end a text
};

// Whether the model was trained for it.
bool has_fim(const Tokenizer& tokenizer);

// 400 that names `suffix` if it was not.
ApiResult<FimPrompt> fim_prompt(const Tokenizer& tokenizer, std::string_view prefix,
                                std::string_view suffix);

}  // namespace lockstep
