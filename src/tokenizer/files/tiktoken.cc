// tiktoken's file of ranks, as Llama 3 (tokenizer.model) and Kimi (tiktoken.model) publish it:
// https://github.com/openai/tiktoken/blob/main/tiktoken/load.py
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "tokenizer/files/rank_vocabulary.h"
#include "tokenizer/pipeline/pre_tokenizer_names.h"
#include "tokenizer/text/base64.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kTiktokenPart = "tiktoken file";
constexpr std::string_view kLlama3 = "llama3";
constexpr std::string_view kKimi = "kimi-k2";
constexpr int32_t kSpecialCount = 256;  // both families reserve this many ids after the ranks

// The named ones of Llama 3; the others are reserved.
constexpr std::pair<int32_t, std::string_view> kLlama3Specials[] = {
    {0, "<|begin_of_text|>"},   {1, "<|end_of_text|>"},   {4, "<|finetune_right_pad_id|>"},
    {6, "<|start_header_id|>"}, {7, "<|end_header_id|>"}, {8, "<|eom_id|>"},
    {9, "<|eot_id|>"},          {10, "<|python_tag|>"},
};

Error bad_line(size_t line) {
  return corrupt_part(kTiktokenPart, "has no token and rank in line " + std::to_string(line));
}

Result<Vocabulary> read_ranks(std::string_view file) {
  Vocabulary vocabulary;
  for (size_t line = 1; !file.empty(); ++line) {
    std::string_view text = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(text.size() + 1, file.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return bad_line(line);
    const auto bytes = decode_base64(text.substr(0, space));
    int64_t rank = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + space + 1, end, rank);
    if (!bytes || parsed.ec != std::errc() || parsed.ptr != end) return bad_line(line);
    TRY(vocabulary.add(*bytes, rank));
  }
  if (vocabulary.size() == 0) return corrupt_part(kTiktokenPart, "is empty");
  return vocabulary;
}

std::vector<AddedToken> reserved_specials(int32_t first_id, std::string_view pre) {
  std::vector<AddedToken> specials;
  int reserved = 0;
  for (int32_t i = 0; i < kSpecialCount; ++i) {
    AddedToken token;
    token.id = first_id + i;
    token.is_special = true;
    if (pre == kKimi) token.content = "<|reserved_token_" + std::to_string(token.id) + "|>";
    for (const auto& [index, name] : kLlama3Specials) {
      if (pre != kKimi && index == i) token.content = name;
    }
    if (token.content.empty()) {
      token.content = "<|reserved_special_token_" + std::to_string(reserved++) + "|>";
    }
    specials.push_back(std::move(token));
  }
  return specials;
}

// Names from "added_tokens_decoder": {"128000": {"content": ...}}.
Status rename_specials(const Json& config, int32_t first_id, std::vector<AddedToken>& specials) {
  const Json* list = find(config, "added_tokens_decoder");
  if (is_missing(list)) return Ok{};
  if (!list->is_object()) return corrupt_part("added_tokens_decoder", "is not an object");
  for (const auto& member : list->get_object()) {
    int32_t id = 0;
    const char* end = member.key().data() + member.key().size();
    const auto parsed = std::from_chars(member.key().data(), end, id);
    const int64_t index = int64_t{id} - first_id;
    if (parsed.ec != std::errc() || parsed.ptr != end || index < 0 ||
        index >= static_cast<int64_t>(specials.size())) {
      continue;  // not after the ranks: already in this file
    }
    AddedToken& token = specials[static_cast<size_t>(index)];
    token.content = TRY(required_string("added_tokens_decoder", member.value(), "content"));
    if (token.content.size() > kAddedTokenBytesMax) {
      return unsupported_part("added_tokens_decoder", "length");
    }
    token.is_special = TRY(flag_or("added_tokens_decoder", member.value(), "special", true));
  }
  return Ok{};
}

Result<bool> adds_bos(const Json* config, std::string_view pre) {
  const bool missing = pre == kLlama3 && config == nullptr;
  if (config == nullptr) return missing;
  return flag_or("tokenizer_config", *config, "add_bos_token", pre == kLlama3);
}

}  // namespace

TokenizerResult read_tiktoken(std::string_view file, const Json* config, std::string_view pre) {
  if (pre.empty()) pre = kLlama3;
  RankVocabulary parts;
  parts.vocabulary = TRY(read_ranks(file));
  const int32_t first_special = parts.vocabulary.size();
  parts.specials = reserved_specials(first_special, pre);
  if (config != nullptr) TRY(rename_specials(*config, first_special, parts.specials));
  if (TRY(adds_bos(config, pre))) parts.bos_id = first_special;
  parts.pre_tokenizer = TRY(PreTokenizer::byte_level(TRY(named_pre_tokenizer(pre)).patterns));
  return make_rank_tokenizer(std::move(parts));
}

}  // namespace lockstep
