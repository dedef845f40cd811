#include "tokenizer/pipeline/token_pipeline.h"

#include <utility>

#include "base/text_hash.h"
#include "base/threads/work.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

// Calls on_token(id) for each match of `tokens` and on_text(text, begin) for the text in between.
template <class OnText, class OnToken>
void split_at_tokens(const AddedTokens& tokens, std::string_view text,
                     std::span<const SpecialRange> ranges, const OnText& on_text,
                     const OnToken& on_token) {
  size_t position = 0;
  while (position < text.size() && !Work::is_over()) {
    while (!ranges.empty() && ranges.front().end <= position) ranges = ranges.subspan(1);
    const auto match = tokens.next(text, position, ranges);
    const size_t end = match ? match->begin : text.size();
    if (end > position) on_text(text.substr(position, end - position), position);
    if (!match) return;
    on_token(match->id);
    position = match->end;
  }
}

// Caches the ids of pieces seen in this text, by position in the text and in the ids, because words
// repeat. A piece that maps to the same slot evicts the older one.
class PieceCache {
 public:
  // Null if the piece is not cached.
  struct Entry {
    std::string_view piece;
    size_t begin = 0;
    size_t count = 0;
  };

  explicit PieceCache(size_t text_bytes) {
    if (text_bytes >= kTextBytesMin) entries_.resize(kEntries);
  }

  template <class Encode>
  void encode(std::string_view piece, std::vector<int32_t>& ids, const Encode& encode) {
    if (entries_.empty() || piece.size() > kPieceBytesMax) {
      encode(piece, ids);
      return;
    }
    Entry& entry = entries_[TextHash()(piece) % kEntries];
    const size_t begin = ids.size();
    if (entry.piece == piece) {
      for (size_t i = 0; i < entry.count; ++i) ids.push_back(ids[entry.begin + i]);
    } else {
      encode(piece, ids);
    }
    entry = {piece, begin, ids.size() - begin};
  }

 private:
  static constexpr size_t kTextBytesMin = 2048;
  static constexpr size_t kPieceBytesMax = 64;
  static constexpr size_t kEntries = 4096;

  std::vector<Entry> entries_;
};

}  // namespace

std::vector<int32_t> PipelineTokenizer::encode(std::string_view text, EncodeOptions options) const {
  const PromptText whole = {text, options.parse_special};
  return encode_pieces({&whole, 1}, options.add_bos);
}

std::vector<int32_t> PipelineTokenizer::encode_pieces(std::span<const PromptText> pieces,
                                                      bool add_bos) const {
  std::vector<int32_t> ids;
  if (add_bos && parts_.bos_id) ids.push_back(*parts_.bos_id);
  std::string text;
  std::vector<SpecialRange> ranges;
  for (const PromptText& piece : pieces) {
    const size_t begin = text.size();
    text += is_valid_utf8(piece.text) ? std::string(piece.text) : replace_invalid_utf8(piece.text);
    if (!piece.parse_special || begin == text.size()) continue;
    const bool continues = !ranges.empty() && ranges.back().end == begin;
    if (!continues) ranges.push_back({begin, begin});
    ranges.back().end = text.size();
  }
  split_at_tokens(
      parts_.raw_tokens, text, ranges,
      [&](std::string_view between, size_t begin) { encode_plain(between, begin == 0, ids); },
      [&](int32_t id) { ids.push_back(id); });
  return ids;
}

// The normalizer sees each text between added tokens separately: with Llama's Prepend each one gets
// its dummy space, as in Hugging Face's legacy tokenizers.
void PipelineTokenizer::encode_plain(std::string_view text, bool starts_input,
                                     std::vector<int32_t>& ids) const {
  const std::string normalized = parts_.normalizer.apply(text);
  split_at_tokens(
      parts_.normalized_tokens, normalized, {},
      [&](std::string_view between, size_t begin) {
        encode_cut(between, starts_input && begin == 0, ids);
      },
      [&](int32_t id) { ids.push_back(id); });
}

void PipelineTokenizer::encode_cut(std::string_view text, bool starts_input,
                                   std::vector<int32_t>& ids) const {
  const TextPieces cut = parts_.pre_tokenizer.cut(std::string(text), starts_input);
  PieceCache cache(cut.text.size());
  for (const TextPieces::Piece piece : cut.pieces) {
    if (Work::is_over()) return;
    cache.encode(cut.view(piece), ids, [&](std::string_view bytes, std::vector<int32_t>& out) {
      parts_.model->encode(bytes, out);
    });
  }
}

Result<std::string> PipelineTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const auto text = parts_.vocabulary->text(id);
    if (!text) {
      return Error{ErrorCode::kInvalidArgument,
                   "the vocabulary has no token " + std::to_string(id)};
    }
    bytes += parts_.decoder.token_bytes(*text);
  }
  const bool strips = strips_leading_space() && bytes.starts_with(' ');
  return replace_invalid_utf8(std::string_view(bytes).substr(strips ? 1 : 0));
}

std::string PipelineTokenizer::token_bytes(int32_t id) const {
  const auto text = parts_.vocabulary->text(id);
  if (!text || is_special(id)) return "";
  return parts_.decoder.token_bytes(*text);
}

void set_added_tokens(std::vector<AddedToken> tokens, PipelineParts& parts) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (AddedToken& token : tokens) {
    if (token.is_special) parts.special_ids.insert(token.id);
    if (token.is_normalized && !token.is_special) {
      token.content = parts.normalizer.apply(token.content);
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  parts.raw_tokens = AddedTokens(std::move(raw));
  parts.normalized_tokens = AddedTokens(std::move(normalized));
}

}  // namespace lockstep
