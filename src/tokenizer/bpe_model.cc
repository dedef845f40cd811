#include "tokenizer/bpe_model.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "model";

std::string_view as_view(const boost::json::string& text) {
  return {text.data(), text.size()};
}

// Both ways of writing a merge: "a b", and ["a", "b"] where texts may have spaces.
Result<std::pair<std::string_view, std::string_view>> read_pair(const Json& merge) {
  if (const auto* text = merge.if_string()) {
    const std::string_view view = as_view(*text);
    const size_t space = view.find(' ');
    if (space != std::string_view::npos && view.find(' ', space + 1) == std::string_view::npos) {
      return std::pair(view.substr(0, space), view.substr(space + 1));
    }
  }
  const JsonArray* pair = merge.if_array();
  const bool is_pair =
      pair != nullptr && pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string();
  if (!is_pair) return corrupt_part(kPart, "has a merge that is no pair: " + dump_json(merge));
  return std::pair(as_view((*pair)[0].get_string()), as_view((*pair)[1].get_string()));
}

Result<std::vector<PairMerger::Merge>> read_merges(const Json& model,
                                                   const Vocabulary& vocabulary) {
  const Json* list = find(model, "merges");
  if (list == nullptr || !list->is_array()) return corrupt_part(kPart, "has no merges");
  std::vector<PairMerger::Merge> merges;
  merges.reserve(list->get_array().size());
  for (const Json& merge : list->get_array()) {
    const auto pair = TRY(read_pair(merge));
    const auto left = vocabulary.find(pair.first);
    const auto right = vocabulary.find(pair.second);
    const auto result = vocabulary.find(std::string(pair.first) + std::string(pair.second));
    if (!left || !right || !result) {
      return corrupt_part(kPart, "merges what is not in the vocabulary: " + dump_json(merge));
    }
    merges.push_back({*left, *right, *result});
  }
  return merges;
}

// A setting that changes the ids and that this version does not know must be off.
Status check_is_off(const Json& model, std::string_view key) {
  const Json* value = find(model, key);
  if (is_missing(value)) return Ok{};
  const bool is_empty_text = value->is_string() && value->get_string().empty();
  const bool is_zero = (value->is_double() && value->get_double() == 0.0) ||
                       (value->is_int64() && value->get_int64() == 0);
  if (is_empty_text || is_zero) return Ok{};
  return unsupported_part(kPart, key);
}

}  // namespace

Result<BpeModel> BpeModel::read(const Json& model, const Vocabulary& vocabulary) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    TRY(check_is_off(model, key));
  }
  const Options options = TRY(read_options(model, vocabulary));
  BpeModel result(options, PairMerger(TRY(read_merges(model, vocabulary))));
  if (options.has_byte_tokens) {
    for (int byte = 0; byte < 256; ++byte) {
      result.byte_ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
    }
  }
  return result;
}

Result<BpeModel::Options> BpeModel::read_options(const Json& model, const Vocabulary& vocabulary) {
  Options options = {};
  options.fuses_unknown = TRY(flag_or(kPart, model, "fuse_unk", false));
  options.has_byte_tokens = TRY(flag_or(kPart, model, "byte_fallback", false));
  options.ignores_merges = TRY(flag_or(kPart, model, "ignore_merges", false));
  const auto unknown = get_string(model, "unk_token");
  if (!unknown.ok()) return corrupt_part(kPart, "is wrong: " + unknown.error().message);
  if (!unknown.value()) return options;
  options.unknown_id = vocabulary.find(*unknown.value());
  if (options.unknown_id) return options;
  return corrupt_part(kPart, "has an unk_token that is not in the vocabulary");
}

void BpeModel::encode(std::string_view piece, const Vocabulary& vocabulary,
                      std::vector<int32_t>& ids) const {
  if (options_.ignores_merges) {
    if (const auto id = vocabulary.find(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<int32_t> symbols;
  bool follows_unknown = false;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, first_utf8_character(piece).bytes);
    piece.remove_prefix(character.size());
    bool is_unknown = false;
    if (const auto id = vocabulary.find(character)) {
      symbols.push_back(*id);
    } else if (!append_bytes(character, symbols)) {
      is_unknown = true;
      const bool is_fused = options_.fuses_unknown && follows_unknown;
      if (options_.unknown_id && !is_fused) symbols.push_back(*options_.unknown_id);
    }
    follows_unknown = is_unknown;
  }
  merger_.merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// False, and nothing appended, unless every byte has a token.
bool BpeModel::append_bytes(std::string_view character, std::vector<int32_t>& symbols) const {
  for (const char byte : character) {
    if (!byte_ids_[static_cast<uint8_t>(byte)]) return false;
  }
  for (const char byte : character) symbols.push_back(*byte_ids_[static_cast<uint8_t>(byte)]);
  return true;
}

}  // namespace lockstep
