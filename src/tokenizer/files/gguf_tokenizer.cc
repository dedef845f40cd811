// The tokenizer of a GGUF file: the keys tokenizer.ggml.*, as llama.cpp reads them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/files/sentence_piece.h"
#include "tokenizer/models/bpe_model.h"
#include "tokenizer/models/word_piece_model.h"
#include "tokenizer/pipeline/pre_tokenizer_names.h"
#include "tokenizer/pipeline/token_pipeline.h"
#include "tokenizer/text/byte_alphabet.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kGgufPart = "GGUF vocabulary";
constexpr std::string_view kGgufSpaceMark = "\xE2\x96\x81";  // U+2581

struct GgufTokens {
  std::vector<std::string_view> texts;
  std::vector<int64_t> types;  // of PieceType; empty: all are normal
  std::optional<int32_t> bos_id;
  std::optional<bool> adds_bos;
  std::optional<int32_t> unknown_id;

  PieceType type(size_t id) const {
    return types.empty() ? PieceType::kNormal : static_cast<PieceType>(types[id]);
  }
  bool is_special(size_t id) const {
    return type(id) == PieceType::kControl || type(id) == PieceType::kUnknown;
  }
};

Result<std::optional<int32_t>> read_id(const GgufFile& file, std::string_view key, size_t count) {
  const auto id = TRY(file.integer(key));
  if (!id || *id < 0) return std::optional<int32_t>();
  if (*id >= static_cast<int64_t>(count)) {
    return corrupt_part(kGgufPart, "has " + std::to_string(count) + " tokens, but " +
                                       std::string(key) + " is " + std::to_string(*id));
  }
  return std::optional(static_cast<int32_t>(*id));
}

Result<GgufTokens> read_tokens(const GgufFile& file) {
  GgufTokens tokens;
  tokens.texts = TRY(file.strings("tokenizer.ggml.tokens"));
  if (tokens.texts.empty()) return corrupt_part(kGgufPart, "has no tokens");
  tokens.types = TRY(file.integers("tokenizer.ggml.token_type"));
  if (!tokens.types.empty() && tokens.types.size() != tokens.texts.size()) {
    return corrupt_part(kGgufPart, "has " + std::to_string(tokens.texts.size()) + " tokens but " +
                                       std::to_string(tokens.types.size()) + " types");
  }
  const size_t count = tokens.texts.size();
  tokens.bos_id = TRY(read_id(file, "tokenizer.ggml.bos_token_id", count));
  tokens.unknown_id = TRY(read_id(file, "tokenizer.ggml.unknown_token_id", count));
  tokens.adds_bos = TRY(file.boolean("tokenizer.ggml.add_bos_token"));
  return tokens;
}

// Fills the vocabulary and returns the added tokens.
Result<std::vector<AddedToken>> add_tokens(const GgufTokens& tokens, bool is_byte_level,
                                           Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string_view text = tokens.texts[i];
    const auto id = static_cast<int32_t>(i);
    const bool is_user_defined = tokens.type(i) == PieceType::kUserDefined;
    const bool is_added = tokens.is_special(i) || is_user_defined;
    const auto bytes = is_byte_level && !is_added ? bytes_of_alphabet(text) : std::nullopt;
    TRY(vocabulary.add(bytes ? std::string_view(*bytes) : text, id));
    if (!is_added) continue;
    // Its text is not in the byte-level form of the vocabulary.
    if (tokens.is_special(i) || is_byte_level) vocabulary.hide(id);
    if (text.size() > kAddedTokenBytesMax) return unsupported_part(kGgufPart, "token length");
    AddedToken token = {.content = std::string(text), .id = id};
    token.is_special = !is_user_defined;
    added.push_back(std::move(token));
  }
  return added;
}

// Skips merges of texts that are not in the vocabulary: they yield no token.
Result<std::vector<PairMerger::Merge>> read_gguf_merges(const GgufFile& file, bool is_byte_level,
                                                        const Vocabulary& vocabulary) {
  const auto texts = TRY(file.strings("tokenizer.ggml.merges"));
  if (texts.empty()) return corrupt_part(kGgufPart, "has no merges");
  std::vector<PairMerger::Merge> merges;
  merges.reserve(texts.size());
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string_view text = texts[rank];
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos) {
      return corrupt_part(kGgufPart,
                          "has the merge \"" + std::string(text) + "\", which is not a pair");
    }
    const auto text_of_part = [&](std::string_view part) {
      return is_byte_level ? bytes_of_alphabet(part) : std::optional(std::string(part));
    };
    const auto left = text_of_part(text.substr(0, space));
    const auto right = text_of_part(text.substr(space + 1));
    if (!left || !right) continue;
    const auto left_id = vocabulary.find(*left);
    const auto right_id = vocabulary.find(*right);
    const auto result = vocabulary.find(*left + *right);
    if (left_id && right_id && result) {
      merges.push_back({*left_id, *right_id, *result, static_cast<int32_t>(rank)});
    }
  }
  return merges;
}

TokenizerResult read_byte_level(const GgufFile& file, const GgufTokens& tokens,
                                std::string_view pre) {
  const NamedPreTokenizer named = TRY(named_pre_tokenizer(pre));
  auto vocabulary = std::make_shared<Vocabulary>(tokens.texts.size());
  PipelineParts parts;
  set_added_tokens(TRY(add_tokens(tokens, true, *vocabulary)), parts);
  BpeOptions options;
  options.is_byte_level = true;
  options.ignores_merges = named.ignores_merges;
  parts.model = std::make_shared<BpeModel>(options, vocabulary,
                                           TRY(read_gguf_merges(file, true, *vocabulary)));
  parts.vocabulary = std::move(vocabulary);
  parts.pre_tokenizer = TRY(PreTokenizer::byte_level(named.patterns));
  parts.decoder = Decoder::byte_level();
  if (named.has_nfc) parts.normalizer = Normalizer({NormalForm::kNfc});
  if (tokens.adds_bos.value_or(named.adds_bos)) parts.bos_id = tokens.bos_id;
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(parts)));
}

// llama.cpp's converter declares these ordinary, so that they are printed; typed by a user they
// must not become what they are to the model.
constexpr std::string_view kGemmaMarks[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                            "<tool_call|>", "<|tool_response>", "<tool_response|>",
                                            "<|\"|>"};

// Gemma 4: merges in the order of their list over texts in which spaces are marked, and a byte's
// token for a character that the vocabulary lacks.
TokenizerResult read_marked(const GgufFile& file, GgufTokens tokens) {
  for (size_t id = 0; id < tokens.types.size(); ++id) {
    const bool is_mark = std::find(std::begin(kGemmaMarks), std::end(kGemmaMarks),
                                   tokens.texts[id]) != std::end(kGemmaMarks);
    if (is_mark) tokens.types[id] = static_cast<int64_t>(PieceType::kControl);
  }
  auto vocabulary = std::make_shared<Vocabulary>(tokens.texts.size());
  PipelineParts parts;
  set_added_tokens(TRY(add_tokens(tokens, false, *vocabulary)), parts);
  BpeOptions options;
  options.has_byte_tokens = true;
  options.fuses_unknown = true;
  options.unknown_id = tokens.unknown_id;
  parts.model = std::make_shared<BpeModel>(options, vocabulary,
                                           TRY(read_gguf_merges(file, false, *vocabulary)));
  parts.vocabulary = std::move(vocabulary);
  parts.normalizer = Normalizer({Replacement{" ", std::string(kGgufSpaceMark)}});
  parts.decoder = Decoder::sentence_piece(false);
  parts.bos_id = tokens.bos_id;  // some files say that none is added, but the model needs it
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(parts)));
}

TokenizerResult read_pieces(const GgufFile& file, const GgufTokens& tokens, bool is_unigram) {
  const auto scores = TRY(file.numbers("tokenizer.ggml.scores"));
  if (scores.size() != tokens.texts.size()) {
    return corrupt_part(kGgufPart, "has " + std::to_string(tokens.texts.size()) + " tokens but " +
                                       std::to_string(scores.size()) + " scores");
  }
  SentencePieceParts parts;
  for (size_t i = 0; i < scores.size(); ++i) {
    parts.pieces.push_back({tokens.texts[i], scores[i], tokens.type(i)});
  }
  parts.is_unigram = is_unigram;
  parts.adds_dummy_prefix = TRY(file.boolean("tokenizer.ggml.add_space_prefix")).value_or(true);
  parts.unknown_id = tokens.unknown_id;
  if (!parts.unknown_id) parts.unknown_id = is_unigram ? 2 : 0;
  if (is_unigram) {
    parts.charsmap = TRY(file.bytes("tokenizer.ggml.precompiled_charsmap"));
    parts.removes_extra_spaces =
        TRY(file.boolean("tokenizer.ggml.remove_extra_whitespaces")).value_or(false);
  }
  if (tokens.adds_bos.value_or(!is_unigram)) parts.bos_id = tokens.bos_id;
  return make_sentence_piece_tokenizer(parts);
}

// llama.cpp writes BERT's vocabulary with "\u2581" before words instead of "##" inside them.
TokenizerResult read_words(const GgufTokens& tokens) {
  if (!tokens.unknown_id) return corrupt_part(kGgufPart, "has no unknown token");
  auto vocabulary = std::make_shared<Vocabulary>(tokens.texts.size());
  PipelineParts parts;
  set_added_tokens(TRY(add_tokens(tokens, false, *vocabulary)), parts);
  WordPieceOptions options;
  options.unknown_id = *tokens.unknown_id;
  options.first_prefix = kGgufSpaceMark;
  parts.model = std::make_shared<WordPieceModel>(options, vocabulary);
  parts.vocabulary = std::move(vocabulary);
  parts.normalizer = Normalizer({Normalizer::Bert{true, true, true, true}});
  const Json bert = JsonObject{{"type", "BertPreTokenizer"}};
  parts.pre_tokenizer = TRY(PreTokenizer::read(&bert));
  parts.decoder = Decoder::sentence_piece(true);
  if (tokens.adds_bos.value_or(true)) parts.bos_id = tokens.bos_id;
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(parts)));
}

}  // namespace

TokenizerResult read_gguf_tokenizer(const GgufFile& file, std::string_view pre) {
  const auto model = TRY(file.string("tokenizer.ggml.model"));
  if (!model) return corrupt_part("GGUF file", "has no tokenizer.ggml.model");
  const GgufTokens tokens = TRY(read_tokens(file));
  if (*model == "gpt2") {
    const auto named = TRY(file.string("tokenizer.ggml.pre"));
    return read_byte_level(file, tokens, pre.empty() ? named.value_or("default") : pre);
  }
  if (!pre.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the tokenizer \"" + std::string(*model) +
                     "\" has no pre-tokenizer that --pre could replace"};
  }
  if (*model == "gemma4") return read_marked(file, tokens);
  if (*model == "llama") return read_pieces(file, tokens, false);
  if (*model == "t5") return read_pieces(file, tokens, true);
  if (*model == "bert") return read_words(tokens);
  return unsupported_part("model", *model);
}

}  // namespace lockstep
