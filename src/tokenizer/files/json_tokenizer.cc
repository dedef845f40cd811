// Hugging Face's tokenizer.json: https://github.com/huggingface/tokenizers
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/files/json_model.h"
#include "tokenizer/formats.h"
#include "tokenizer/pipeline/post_processor.h"
#include "tokenizer/pipeline/token_pipeline.h"
#include "tokenizer/text/byte_alphabet.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kAddedPart = "added token";

// The model's own id for a text.
std::optional<int32_t> find_in_model(const Vocabulary& vocabulary, const std::string& text,
                                     bool is_byte_level) {
  if (!is_byte_level) return vocabulary.find_any(text);
  const auto bytes = bytes_of_alphabet(text);
  return bytes ? vocabulary.find_any(*bytes) : std::nullopt;
}

Result<AddedToken> read_added_token(const Json& value, bool is_byte_level, Vocabulary& vocabulary) {
  AddedToken token;
  token.content = TRY(required_string(kAddedPart, value, "content"));
  const std::string part = std::string(kAddedPart) + " " + token.content;
  if (token.content.size() > kAddedTokenBytesMax) return unsupported_part(kAddedPart, "length");
  const auto id = get_int(value, "id");
  if (!id.ok() || !id.value()) return corrupt_part(part, "has no id");
  token.is_special = TRY(flag_or(part, value, "special", false));
  token.takes_left_space = TRY(flag_or(part, value, "lstrip", false));
  token.takes_right_space = TRY(flag_or(part, value, "rstrip", false));
  token.is_single_word = TRY(flag_or(part, value, "single_word", false));
  token.is_normalized = TRY(flag_or(part, value, "normalized", !token.is_special));
  // As in Hugging Face, the model's own id takes precedence.
  const auto known = find_in_model(vocabulary, token.content, is_byte_level);
  if (!known) TRY(vocabulary.add(token.content, *id.value()));
  token.id = known ? *known : static_cast<int32_t>(*id.value());
  if (token.is_special || !known) vocabulary.hide(token.id);
  return token;
}

Result<std::vector<AddedToken>> read_added_tokens(const Json* list, bool is_byte_level,
                                                  Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (is_missing(list)) return tokens;
  if (!list->is_array()) return corrupt_part("added_tokens", "is not a list");
  for (const Json& value : list->get_array()) {
    tokens.push_back(TRY(read_added_token(value, is_byte_level, vocabulary)));
  }
  return tokens;
}

}  // namespace

TokenizerResult read_json_tokenizer(const Json& document) {
  const Json* model = find(document, "model");
  if (model == nullptr) return corrupt_part("file", "has no model");
  TRY(json_model_type(*model));
  PipelineParts parts;
  parts.normalizer = TRY(Normalizer::read(find(document, "normalizer")));
  parts.pre_tokenizer = TRY(PreTokenizer::read(find(document, "pre_tokenizer")));
  parts.decoder = TRY(Decoder::read(find(document, "decoder")));
  const TextFrame frame = TRY(read_text_frame(find(document, "post_processor")));
  parts.bos_id = frame.bos_id;
  parts.end_id = frame.end_id;
  const bool is_byte_level = parts.pre_tokenizer.is_byte_level();
  if (is_byte_level != parts.decoder.is_byte_level()) {
    return unsupported_part("decoder", is_byte_level ? "of a byte-level text" : "ByteLevel");
  }
  auto vocabulary = std::make_shared<Vocabulary>(TRY(read_json_vocabulary(*model, is_byte_level)));
  auto added = TRY(read_added_tokens(find(document, "added_tokens"), is_byte_level, *vocabulary));
  set_added_tokens(std::move(added), parts);
  parts.model = TRY(read_json_model(*model, vocabulary, is_byte_level));
  if (parts.bos_id && !vocabulary->text(*parts.bos_id)) {
    return corrupt_part("post_processor", "begins a text with a token that does not exist");
  }
  if (parts.end_id && !vocabulary->text(*parts.end_id)) {
    return corrupt_part("post_processor", "ends a text with a token that does not exist");
  }
  parts.vocabulary = std::move(vocabulary);
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(parts)));
}

}  // namespace lockstep
