// Shared by tiktoken.model and tekken.json: a byte-level vocabulary in which a token's rank is its
// merge priority, special tokens, and one pattern. For the readers of these formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/formats.h"
#include "tokenizer/models/vocabulary.h"
#include "tokenizer/pipeline/added_tokens.h"
#include "tokenizer/pipeline/pre_tokenizer.h"

namespace lockstep {

struct RankVocabulary {
  Vocabulary vocabulary;             // the ranked tokens, as bytes
  int32_t first_id = 0;              // of rank 0
  std::vector<AddedToken> specials;  // their ids are not in `vocabulary` yet
  PreTokenizer pre_tokenizer;
  std::optional<int32_t> bos_id;
};

TokenizerResult make_rank_tokenizer(RankVocabulary parts);

}  // namespace lockstep
