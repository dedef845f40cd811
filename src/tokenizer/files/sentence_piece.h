// Shared by SentencePiece's own files and GGUF files converted from them. For the readers of these
// formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats.h"

namespace lockstep {

// The values of sentencepiece_model.proto and of tokenizer.ggml.token_type.
enum class PieceType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct SentencePiece {
  std::string_view text;
  double score = 0;
  PieceType type = PieceType::kNormal;
};

struct SentencePieceParts {
  std::vector<SentencePiece> pieces;  // by id
  bool is_unigram = false;            // else BPE
  bool adds_dummy_prefix = true;
  bool removes_extra_spaces = false;
  // User-defined pieces are matched after the normalizer, as in SentencePiece, and the text after
  // one gets no prefix; else they are matched in the raw text.
  bool has_normalized_user_pieces = false;
  std::string_view charsmap;
  std::optional<int32_t> unknown_id;
  std::optional<int32_t> bos_id;  // begins a text
};

TokenizerResult make_sentence_piece_tokenizer(const SentencePieceParts& parts);

}  // namespace lockstep
