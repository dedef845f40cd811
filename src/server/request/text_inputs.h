// Texts as OpenAI's completions and embeddings take them: a string, an array of strings, an array
// of token ids, or an array of arrays of token ids. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "server/request/errors.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

using TextInput = std::variant<std::string, std::vector<int32_t>>;

// At least one, at most `most`; errors name `field`.
ApiResult<std::vector<TextInput>> parse_text_inputs(const Json* value, std::string_view field,
                                                    size_t most);
// 400 unless all are in the tokenizer's vocabulary.
ApiResult<Ok> check_token_ids(const std::vector<int32_t>& ids, const Tokenizer& tokenizer,
                              std::string_view field);

}  // namespace lockstep
