#include "tokenizer/files/sentence_piece.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tokenizer/models/bpe_model.h"
#include "tokenizer/models/unigram_model.h"
#include "tokenizer/pipeline/token_pipeline.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kSentencePiecePart = "SentencePiece model";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

bool is_special(PieceType type) {
  return type == PieceType::kControl || type == PieceType::kUnknown;
}

// Text may become these.
bool is_mergeable(PieceType type) {
  return !is_special(type) && type != PieceType::kByte;
}

// Equal scores have equal ranks; the best score has rank 0; -1: no rank.
std::vector<int32_t> ranks_of(const std::vector<SentencePiece>& pieces) {
  std::vector<double> scores;
  for (const SentencePiece& piece : pieces) {
    if (is_mergeable(piece.type)) scores.push_back(piece.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<int32_t> ranks;
  for (const SentencePiece& piece : pieces) {
    const auto place =
        std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    const auto rank = static_cast<int32_t>(place - scores.begin());
    ranks.push_back(is_mergeable(piece.type) ? rank : -1);
  }
  return ranks;
}

Result<std::shared_ptr<const TokenModel>> make_model(
    const SentencePieceParts& parts, const std::shared_ptr<const Vocabulary>& vocabulary) {
  const bool has_byte_pieces =
      std::any_of(parts.pieces.begin(), parts.pieces.end(),
                  [](const SentencePiece& piece) { return piece.type == PieceType::kByte; });
  if (!parts.is_unigram) {
    const auto ranks = ranks_of(parts.pieces);
    std::vector<int32_t> ids;
    for (size_t id = 0; id < ranks.size(); ++id) {
      if (ranks[id] >= 0) ids.push_back(static_cast<int32_t>(id));
    }
    BpeOptions options;
    options.unknown_id = parts.unknown_id;
    options.has_byte_tokens = has_byte_pieces;
    options.fuses_unknown = true;
    return std::shared_ptr<const TokenModel>(
        std::make_shared<BpeModel>(options, vocabulary, merges_by_rank(*vocabulary, ids, ranks)));
  }
  if (!parts.unknown_id) return corrupt_part(kSentencePiecePart, "has no unknown token");
  double best = 0.0;
  bool is_first = true;
  for (const SentencePiece& piece : parts.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    best = is_first ? piece.score : std::max(best, piece.score);
    is_first = false;
  }
  std::vector<double> scores;
  for (const SentencePiece& piece : parts.pieces) {
    // As in SentencePiece: a user-defined piece beats any split into parts.
    const bool is_user_defined = piece.type == PieceType::kUserDefined;
    const auto bytes = static_cast<double>(piece.text.size());
    scores.push_back(is_user_defined ? bytes * best - 0.1 : piece.score);
  }
  const UnigramOptions options = {*parts.unknown_id, has_byte_pieces};
  return std::shared_ptr<const TokenModel>(
      TRY(UnigramModel::make(options, *vocabulary, std::move(scores))));
}

Result<Normalizer> make_normalizer(const SentencePieceParts& parts) {
  std::vector<Normalizer::Step> steps;
  if (!parts.charsmap.empty()) {
    steps.emplace_back(std::make_shared<const Charsmap>(TRY(Charsmap::parse(parts.charsmap))));
  }
  if (parts.removes_extra_spaces) steps.emplace_back(Normalizer::RemoveExtraSpaces{});
  if (parts.adds_dummy_prefix) steps.emplace_back(Normalizer::Prepend{" "});
  steps.emplace_back(Replacement{" ", std::string(kSpaceMark)});
  return Normalizer(std::move(steps));
}

}  // namespace

TokenizerResult make_sentence_piece_tokenizer(const SentencePieceParts& parts) {
  auto vocabulary = std::make_shared<Vocabulary>(parts.pieces.size());
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (size_t i = 0; i < parts.pieces.size(); ++i) {
    const SentencePiece& piece = parts.pieces[i];
    const auto id = static_cast<int32_t>(i);
    TRY(vocabulary->add(piece.text, id));
    if (is_special(piece.type)) vocabulary->hide(id);
    const bool is_user_defined = piece.type == PieceType::kUserDefined;
    if (!is_special(piece.type) && !is_user_defined) continue;
    AddedToken token = {.content = std::string(piece.text), .id = id};
    if (token.content.size() > kAddedTokenBytesMax)
      return unsupported_part(kSentencePiecePart, "token length");
    token.is_special = !is_user_defined;
    const bool is_behind = is_user_defined && parts.has_normalized_user_pieces;
    (is_behind ? normalized : raw).push_back(std::move(token));
  }
  const auto count = static_cast<int32_t>(parts.pieces.size());
  for (const auto& id : {parts.bos_id, parts.unknown_id}) {
    if (id && (*id < 0 || *id >= count)) {
      return corrupt_part(kSentencePiecePart, "names the token " + std::to_string(*id) + " of " +
                                                  std::to_string(count));
    }
  }
  PipelineParts pipeline;
  pipeline.model = TRY(make_model(parts, vocabulary));
  pipeline.vocabulary = std::move(vocabulary);
  pipeline.normalizer = TRY(make_normalizer(parts));
  pipeline.decoder = Decoder::sentence_piece(parts.adds_dummy_prefix);
  pipeline.bos_id = parts.bos_id;
  set_added_tokens(std::move(raw), pipeline);
  if (!normalized.empty()) pipeline.normalized_tokens = AddedTokens(std::move(normalized));
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(pipeline)));
}

}  // namespace lockstep
