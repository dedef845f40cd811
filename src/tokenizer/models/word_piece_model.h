// WordPieceModel: splits a word as BERT does: the longest token at its beginning, then repeatedly
// the longest that continues it. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/vocabulary.h"

namespace lockstep {

struct WordPieceOptions {
  int32_t unknown_id = 0;
  std::string first_prefix;          // of tokens that begin a word: "" or, in GGUF, "\u2581"
  std::string continuation_prefix;   // "##" or, in GGUF, ""
  size_t word_characters_max = 100;  // a longer word is unknown
};

class WordPieceModel : public TokenModel {
 public:
  WordPieceModel(WordPieceOptions options, std::shared_ptr<const Vocabulary> vocabulary);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  WordPieceOptions options_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  size_t token_bytes_max_ = 0;
};

}  // namespace lockstep
