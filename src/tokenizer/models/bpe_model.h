// BpeModel: encodes a piece of text by byte-pair encoding, with byte tokens or an unknown token for
// characters that the vocabulary lacks. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/models/pair_merger.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/models/vocabulary.h"

namespace lockstep {

struct BpeOptions {
  bool is_byte_level = false;  // pieces and the vocabulary's tokens are bytes
  std::optional<int32_t> unknown_id;
  bool fuses_unknown = false;    // adjacent unknown characters are one unknown token
  bool has_byte_tokens = false;  // "<0x0A>" for unknown characters
  bool ignores_merges = false;   // a piece that is a token becomes that token
};

class BpeModel : public TokenModel {
 public:
  BpeModel(BpeOptions options, std::shared_ptr<const Vocabulary> vocabulary,
           const std::vector<PairMerger::Merge>& merges);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;
  void append_characters(std::string_view word, std::vector<int32_t>& symbols) const;
  bool append_bytes(std::string_view character, std::vector<int32_t>& symbols) const;

  BpeOptions options_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  PairMerger merger_;
  std::array<std::optional<int32_t>, 256> byte_ids_;
  // No token crosses a space mark into the next word, so words are merged one by one.
  bool has_separate_words_ = false;
};

// For SentencePiece's and tiktoken's BPE, which have no list of merges: two neighbours merge if
// both and the result are tokens in `ids`, the lowest rank first. `ranks[id]` are not negative.
std::vector<PairMerger::Merge> merges_by_rank(const Vocabulary& vocabulary,
                                              const std::vector<int32_t>& ids,
                                              const std::vector<int32_t>& ranks);

}  // namespace lockstep
