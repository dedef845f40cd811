// SentencePiece's tokenizer.model:
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
#include <string>
#include <utility>

#include "tokenizer/files/protobuf.h"
#include "tokenizer/files/sentence_piece.h"
#include "tokenizer/models/vocabulary.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kSentencePieceFilePart = "SentencePiece model";

// ModelProto.
constexpr uint32_t kPieces = 1;
constexpr uint32_t kTrainerSpec = 2;
constexpr uint32_t kNormalizerSpec = 3;
// SentencePiece.
constexpr uint32_t kPieceText = 1;
constexpr uint32_t kPieceScore = 2;
constexpr uint32_t kPieceType = 3;
// TrainerSpec.
constexpr uint32_t kModelType = 3;
constexpr uint32_t kSuffixSpace = 24;
constexpr uint32_t kUnknownId = 40;
constexpr uint32_t kBosId = 41;
constexpr int32_t kUnigram = 1;
constexpr int32_t kBpe = 2;
// NormalizerSpec.
constexpr uint32_t kCharsmap = 2;
constexpr uint32_t kDummyPrefix = 3;
constexpr uint32_t kRemoveSpaces = 4;
constexpr uint32_t kEscapeSpaces = 5;

Result<SentencePiece> read_piece(std::string_view message) {
  SentencePiece piece;
  ProtobufReader reader(message);
  while (const auto field = TRY(reader.next())) {
    if (field->number == kPieceText) piece.text = field->bytes;
    if (field->number == kPieceScore) piece.score = field->as_float();
    if (field->number == kPieceType) {
      if (field->integer < 1 || field->integer > 6) {
        return corrupt_part(kSentencePieceFilePart,
                            "has a piece of the type " + std::to_string(field->integer));
      }
      piece.type = static_cast<PieceType>(field->as_int());
    }
  }
  return piece;
}

Status read_trainer(std::string_view message, SentencePieceParts& parts) {
  int32_t model_type = kUnigram;
  ProtobufReader reader(message);
  while (const auto field = TRY(reader.next())) {
    if (field->number == kModelType) model_type = field->as_int();
    if (field->number == kUnknownId) parts.unknown_id = field->as_int();
    if (field->number == kBosId) parts.bos_id = field->as_int();
    if (field->number == kSuffixSpace && field->as_bool()) {
      return unsupported_part(kSentencePieceFilePart, "with spaces after words");
    }
  }
  if (model_type != kUnigram && model_type != kBpe) {
    return unsupported_part(kSentencePieceFilePart, "type " + std::to_string(model_type));
  }
  parts.is_unigram = model_type == kUnigram;
  return Ok{};
}

Status read_normalizer(std::string_view message, SentencePieceParts& parts) {
  ProtobufReader reader(message);
  while (const auto field = TRY(reader.next())) {
    if (field->number == kCharsmap) parts.charsmap = field->bytes;
    if (field->number == kDummyPrefix) parts.adds_dummy_prefix = field->as_bool();
    if (field->number == kRemoveSpaces) parts.removes_extra_spaces = field->as_bool();
    if (field->number == kEscapeSpaces && !field->as_bool()) {
      return unsupported_part(kSentencePieceFilePart, "without escaped spaces");
    }
  }
  return Ok{};
}

}  // namespace

TokenizerResult read_sentence_piece(std::string_view file) {
  // The defaults in the proto.
  SentencePieceParts parts;
  parts.is_unigram = true;
  parts.removes_extra_spaces = true;
  parts.has_normalized_user_pieces = true;
  parts.unknown_id = 0;
  parts.bos_id = 1;
  ProtobufReader reader(file);
  while (const auto field = TRY(reader.next())) {
    if (field->number == kPieces) {
      if (parts.pieces.size() > kTokenIdMax)
        return unsupported_part(kSentencePieceFilePart, "size");
      parts.pieces.push_back(TRY(read_piece(field->bytes)));
    }
    if (field->number == kTrainerSpec) TRY(read_trainer(field->bytes, parts));
    if (field->number == kNormalizerSpec) TRY(read_normalizer(field->bytes, parts));
  }
  if (parts.pieces.empty()) return corrupt_part(kSentencePieceFilePart, "has no pieces");
  if (parts.bos_id && *parts.bos_id < 0) parts.bos_id.reset();  // -1: none
  return make_sentence_piece_tokenizer(parts);
}

}  // namespace lockstep
