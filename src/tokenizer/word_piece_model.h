// WordPieceModel: BERT's way to cut a word: the longest token at the beginning, then the longest
// that continues it. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"

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
};

}  // namespace lockstep
