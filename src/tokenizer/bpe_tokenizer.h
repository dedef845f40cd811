// BpeTokenizer: a Tokenizer out of the parts of a tokenizer.json whose model is BPE.
#pragma once

#include <memory>

#include "json/json.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// `document` is the whole tokenizer.json.
Result<std::shared_ptr<const Tokenizer>> read_bpe_tokenizer(const Json& document);

}  // namespace lockstep
