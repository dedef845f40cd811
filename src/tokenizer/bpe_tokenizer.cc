#include "tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/decoder.h"
#include "tokenizer/json_part.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace lockstep {
namespace {

struct Parts {
  Vocabulary vocabulary;
  BpeModel model;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  AddedTokens raw_tokens;         // looked for in the text as it comes
  AddedTokens normalized_tokens;  // looked for behind the normalizer
  std::unordered_set<int32_t> special_ids;
  std::optional<int32_t> bos_id;
};

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(Parts parts) : parts_(std::move(parts)) {}

  int vocab_size() const override { return parts_.vocabulary.size(); }
  std::optional<int32_t> bos_id() const override { return parts_.bos_id; }
  bool strips_leading_space() const override { return parts_.decoder.strips_leading_space(); }
  bool is_special(int32_t id) const override { return parts_.special_ids.contains(id); }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override;
  Result<std::string> decode(std::span<const int32_t> ids) const override;
  std::string token_bytes(int32_t id) const override;

 private:
  void encode_plain(std::string_view text, bool starts_input, bool with_special,
                    std::vector<int32_t>& ids) const;

  Parts parts_;
};

// Calls on_text(text, begin) and on_token(id) for what `tokens` finds and what lies between.
template <class OnText, class OnToken>
void split_at_tokens(const AddedTokens& tokens, std::string_view text, bool with_special,
                     const OnText& on_text, const OnToken& on_token) {
  size_t position = 0;
  while (position < text.size()) {
    const auto match = tokens.next(text, position, with_special);
    const size_t end = match ? match->begin : text.size();
    if (end > position) on_text(text.substr(position, end - position), position);
    if (!match) return;
    on_token(match->id);
    position = match->end;
  }
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids;
  if (options.add_bos && parts_.bos_id) ids.push_back(*parts_.bos_id);
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  split_at_tokens(
      parts_.raw_tokens, text, options.parse_special,
      [&](std::string_view between, size_t begin) {
        encode_plain(between, begin == 0, options.parse_special, ids);
      },
      [&](int32_t id) { ids.push_back(id); });
  return ids;
}

// The normalizer sees each text between added tokens as if it were alone: with Llama's Prepend each
// one gets its dummy space, as Hugging Face's legacy tokenizers do.
void BpeTokenizer::encode_plain(std::string_view text, bool starts_input, bool with_special,
                                std::vector<int32_t>& ids) const {
  const std::string normalized = parts_.normalizer.apply(text);
  split_at_tokens(
      parts_.normalized_tokens, normalized, with_special,
      [&](std::string_view between, size_t begin) {
        const bool is_first = starts_input && begin == 0;
        for (const auto& piece : parts_.pre_tokenizer.cut(std::string(between), is_first)) {
          parts_.model.encode(piece, parts_.vocabulary, ids);
        }
      },
      [&](int32_t id) { ids.push_back(id); });
}

Result<std::string> BpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const std::string* text = parts_.vocabulary.text(id);
    if (text == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   "the vocabulary has no token " + std::to_string(id)};
    }
    bytes += parts_.decoder.token_bytes(*text);
  }
  const bool strips = strips_leading_space() && bytes.starts_with(' ');
  return replace_invalid_utf8(std::string_view(bytes).substr(strips ? 1 : 0));
}

std::string BpeTokenizer::token_bytes(int32_t id) const {
  const std::string* text = parts_.vocabulary.text(id);
  if (text == nullptr || is_special(id)) return "";
  return parts_.decoder.token_bytes(*text);
}

constexpr std::string_view kAddedPart = "added token";

Result<AddedToken> read_added_token(const Json& value, Vocabulary& vocabulary) {
  AddedToken token;
  token.content = TRY(required_string(kAddedPart, value, "content"));
  const std::string part = std::string(kAddedPart) + " " + token.content;
  if (token.content.size() > kAddedTokenBytesMax) return unsupported_part(kAddedPart, "length");
  const auto id = get_int(value, "id");
  if (!id.ok() || !id.value()) return corrupt_part(part, "has no id");
  if (TRY(flag_or(part, value, "single_word", false))) {
    return unsupported_part(part, "with single_word");
  }
  token.is_special = TRY(flag_or(part, value, "special", false));
  token.takes_left_space = TRY(flag_or(part, value, "lstrip", false));
  token.takes_right_space = TRY(flag_or(part, value, "rstrip", false));
  token.is_normalized = TRY(flag_or(part, value, "normalized", !token.is_special));
  // As with Hugging Face, the model's own id counts where both have one.
  if (!vocabulary.find(token.content)) TRY(vocabulary.add(token.content, *id.value()));
  token.id = *vocabulary.find(token.content);
  return token;
}

Status add_added_tokens(const Json* list, Parts& parts) {
  if (is_missing(list)) return Ok{};
  if (!list->is_array()) return corrupt_part("added_tokens", "is no list");
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (const Json& value : list->get_array()) {
    AddedToken token = TRY(read_added_token(value, parts.vocabulary));
    if (token.is_special) parts.special_ids.insert(token.id);
    if (token.is_normalized) {
      token.content = parts.normalizer.apply(token.content);
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  parts.raw_tokens = AddedTokens(std::move(raw));
  parts.normalized_tokens = AddedTokens(std::move(normalized));
  return Ok{};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> read_bpe_tokenizer(const Json& document) {
  const Json* model = find(document, "model");
  if (model == nullptr) return corrupt_part("file", "has no model");
  Normalizer normalizer = TRY(Normalizer::read(find(document, "normalizer")));
  PreTokenizer pre_tokenizer = TRY(PreTokenizer::read(find(document, "pre_tokenizer")));
  Decoder decoder = TRY(Decoder::read(find(document, "decoder")));
  const auto bos_id = TRY(read_bos_id(find(document, "post_processor")));
  Vocabulary vocabulary = TRY(Vocabulary::read(find(*model, "vocab")));
  BpeModel bpe = TRY(BpeModel::read(*model, vocabulary));
  Parts parts = {.vocabulary = std::move(vocabulary),
                 .model = std::move(bpe),
                 .normalizer = std::move(normalizer),
                 .pre_tokenizer = std::move(pre_tokenizer),
                 .decoder = std::move(decoder),
                 .bos_id = bos_id};
  TRY(add_added_tokens(find(document, "added_tokens"), parts));
  if (bos_id && parts.vocabulary.text(*bos_id) == nullptr) {
    return corrupt_part("post_processor", "begins a text with a token that does not exist");
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<BpeTokenizer>(std::move(parts)));
}

}  // namespace lockstep
