// What SentencePiece's own files and the GGUF files made of them have in common. For the readers of
// these formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats.h"

namespace lockstep {

// The numbers are those of sentencepiece_model.proto and of tokenizer.ggml.token_type.
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
  // User-defined pieces are looked for behind the normalizer, as SentencePiece does, and the text
  // behind one gets no prefix; else in the text as it came.
  bool has_normalized_user_pieces = false;
  std::string_view charsmap;
  std::optional<int32_t> unknown_id;
  std::optional<int32_t> bos_id;  // that begins a text
};

TokenizerResult make_sentence_piece_tokenizer(const SentencePieceParts& parts);

}  // namespace lockstep
