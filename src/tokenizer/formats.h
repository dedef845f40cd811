// The readers of tokenizer files, one function per format. For tokenizer.cc; other code calls
// Tokenizer::load().
#pragma once

#include <memory>
#include <string_view>

#include "gguf/gguf.h"
#include "json/json.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

using TokenizerResult = Result<std::shared_ptr<const Tokenizer>>;

// Hugging Face's tokenizer.json.
TokenizerResult read_json_tokenizer(const Json& document);

// Mistral's tekken.json.
TokenizerResult read_tekken(const Json& document);

// tiktoken's lines of a base64 token and its rank. `config`: the tokenizer_config.json in the same
// folder, or null. Llama 3's unless `pre` says otherwise.
TokenizerResult read_tiktoken(std::string_view file, const Json* config, std::string_view pre);

// SentencePiece's tokenizer.model, a protobuf.
TokenizerResult read_sentence_piece(std::string_view file);

// The tokenizer of a GGUF file. `pre` replaces its tokenizer.ggml.pre if it is not empty.
TokenizerResult read_gguf_tokenizer(const GgufFile& file, std::string_view pre);

}  // namespace lockstep
