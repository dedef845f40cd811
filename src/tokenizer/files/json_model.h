// The "model" of a tokenizer.json: vocabulary and rules. Only for json_tokenizer.cc.
#pragma once

#include <memory>
#include <string_view>

#include "json/json.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/models/vocabulary.h"

namespace lockstep {

// "BPE", "Unigram"...
Result<std::string_view> json_model_type(const Json& model);

// Texts and ids; with `is_byte_level` the texts are converted to bytes.
Result<Vocabulary> read_json_vocabulary(const Json& model, bool is_byte_level);

// `vocabulary` already has the added tokens, and hides tokens that text may not become.
Result<std::shared_ptr<const TokenModel>> read_json_model(
    const Json& model, const std::shared_ptr<const Vocabulary>& vocabulary, bool is_byte_level);

}  // namespace lockstep
