// Mistral's tekken.json: ranks after a block of special tokens.
// https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/tokens/tokenizers/tekken.py
#include <string>
#include <utility>

#include "tokenizer/files/rank_vocabulary.h"
#include "tokenizer/text/base64.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kTekkenPart = "tekken.json";
constexpr std::string_view kBos = "<s>";

// The special tokens, from id 0, of files without a list of them.
constexpr std::string_view kOldSpecials[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

Result<int64_t> required_count(const Json& object, std::string_view key) {
  const auto count = get_int(object, key);
  if (count.ok() && count.value() && *count.value() >= 0 && *count.value() <= kTokenIdMax) {
    return *count.value();
  }
  return corrupt_part(kTekkenPart, "has no count \"" + std::string(key) + "\"");
}

Result<std::vector<AddedToken>> read_specials(const Json* list, int64_t count) {
  std::vector<AddedToken> specials(static_cast<size_t>(count));
  for (int64_t id = 0; id < count; ++id) {
    AddedToken& token = specials[static_cast<size_t>(id)];
    token.id = static_cast<int32_t>(id);
    token.is_special = true;
    token.content = "<SPECIAL_" + std::to_string(id) + ">";
    if (is_missing(list) && id < std::ssize(kOldSpecials)) token.content = kOldSpecials[id];
  }
  if (is_missing(list)) return specials;
  if (!list->is_array()) return corrupt_part(kTekkenPart, "has special_tokens that are not a list");
  for (const Json& entry : list->get_array()) {
    const int64_t rank = TRY(required_count(entry, "rank"));
    if (rank >= count) {
      return corrupt_part(kTekkenPart, "has the special token " + std::to_string(rank) + " of " +
                                           std::to_string(count));
    }
    AddedToken& token = specials[static_cast<size_t>(rank)];
    token.content = TRY(required_string(kTekkenPart, entry, "token_str"));
    if (token.content.size() > kAddedTokenBytesMax)
      return unsupported_part(kTekkenPart, "token length");
  }
  return specials;
}

Status read_tekken_ranks(const Json& list, int64_t count, RankVocabulary& parts) {
  for (const Json& entry : list.get_array()) {
    const int64_t rank = TRY(required_count(entry, "rank"));
    if (rank >= count) continue;  // the file has more tokens than the model uses
    const auto bytes = decode_base64(TRY(required_string(kTekkenPart, entry, "token_bytes")));
    if (!bytes) return corrupt_part(kTekkenPart, "has token_bytes that are not base64");
    TRY(parts.vocabulary.add(*bytes, rank + parts.first_id));
  }
  return Ok{};
}

}  // namespace

TokenizerResult read_tekken(const Json& document) {
  const Json* config = find(document, "config");
  const Json* vocab = find(document, "vocab");
  if (config == nullptr || vocab == nullptr || !vocab->is_array()) {
    return corrupt_part(kTekkenPart, "has no config and vocab");
  }
  const int64_t total = TRY(required_count(*config, "default_vocab_size"));
  const int64_t special_count = TRY(required_count(*config, "default_num_special_tokens"));
  if (special_count > total)
    return corrupt_part(kTekkenPart, "has more special tokens than tokens");
  RankVocabulary parts;
  parts.vocabulary = Vocabulary(static_cast<size_t>(total));
  parts.first_id = static_cast<int32_t>(special_count);
  TRY(read_tekken_ranks(*vocab, total - special_count, parts));
  parts.specials = TRY(read_specials(find(document, "special_tokens"), special_count));
  for (const AddedToken& token : parts.specials) {
    if (token.content == kBos) parts.bos_id = token.id;
  }
  const std::string pattern = TRY(required_string(kTekkenPart, *config, "pattern"));
  parts.pre_tokenizer = TRY(PreTokenizer::byte_level({pattern}));
  return make_rank_tokenizer(std::move(parts));
}

}  // namespace lockstep
