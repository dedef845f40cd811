#include "tokenizer/files/json_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/models/bpe_model.h"
#include "tokenizer/models/unigram_model.h"
#include "tokenizer/models/word_piece_model.h"
#include "tokenizer/text/byte_alphabet.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kModelPart = "model";
constexpr int64_t kWordCharactersMax = 1'000;

using SharedModel = std::shared_ptr<const TokenModel>;

// Both forms of a merge: "a b", and ["a", "b"], in which texts may have spaces.
Result<std::pair<std::string_view, std::string_view>> read_pair(const Json& merge) {
  if (const auto* text = merge.if_string()) {
    const std::string_view view = text_of(*text);
    const size_t space = view.find(' ');
    if (space != std::string_view::npos && view.find(' ', space + 1) == std::string_view::npos) {
      return std::pair(view.substr(0, space), view.substr(space + 1));
    }
  }
  const JsonArray* pair = merge.if_array();
  const bool is_pair =
      pair != nullptr && pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string();
  if (!is_pair)
    return corrupt_part(kModelPart, "has a merge that is not a pair: " + dump_json(merge));
  return std::pair(text_of((*pair)[0].get_string()), text_of((*pair)[1].get_string()));
}

// Also finds hidden tokens.
std::optional<int32_t> find_token(const Vocabulary& vocabulary, std::string_view text,
                                  bool is_byte_level) {
  if (!is_byte_level) return vocabulary.find_any(text);
  const auto bytes = bytes_of_alphabet(text);
  return vocabulary.find_any(bytes ? std::string_view(*bytes) : text);
}

// Skips merges to hidden tokens, which would turn text into special tokens.
Result<std::vector<PairMerger::Merge>> read_json_merges(const Json& model,
                                                        const Vocabulary& vocabulary,
                                                        bool is_byte_level) {
  const Json* list = find(model, "merges");
  if (list == nullptr || !list->is_array()) return corrupt_part(kModelPart, "has no merges");
  std::vector<PairMerger::Merge> merges;
  merges.reserve(list->get_array().size());
  int32_t rank = 0;
  std::string text;
  for (const Json& merge : list->get_array()) {
    const auto pair = TRY(read_pair(merge));
    const auto left = find_token(vocabulary, pair.first, is_byte_level);
    const auto right = find_token(vocabulary, pair.second, is_byte_level);
    text.assign(pair.first).append(pair.second);
    const auto result = find_token(vocabulary, text, is_byte_level);
    if (!left || !right || !result) {
      return corrupt_part(kModelPart,
                          "merges tokens that are not in the vocabulary: " + dump_json(merge));
    }
    if (!vocabulary.is_hidden(*result)) merges.push_back({*left, *right, *result, rank});
    ++rank;
  }
  return merges;
}

// An unsupported setting that changes the ids must be off.
Status check_is_off(const Json& model, std::string_view key) {
  const Json* value = find(model, key);
  if (is_missing(value)) return Ok{};
  const bool is_empty_text = value->is_string() && value->get_string().empty();
  const bool is_zero = (value->is_double() && value->get_double() == 0.0) ||
                       (value->is_int64() && value->get_int64() == 0);
  if (is_empty_text || is_zero) return Ok{};
  return unsupported_part(kModelPart, key);
}

Result<std::optional<int32_t>> read_unknown_id(const Json& model, const Vocabulary& vocabulary) {
  const auto unknown = get_string(model, "unk_token");
  if (!unknown.ok()) return corrupt_part(kModelPart, "is wrong: " + unknown.error().message);
  if (!unknown.value()) return std::optional<int32_t>();
  const auto id = vocabulary.find_any(*unknown.value());
  if (id) return id;
  return corrupt_part(kModelPart, "has an unk_token that is not in the vocabulary");
}

Result<SharedModel> read_bpe(const Json& model, const std::shared_ptr<const Vocabulary>& vocabulary,
                             bool is_byte_level) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    TRY(check_is_off(model, key));
  }
  BpeOptions options;
  options.is_byte_level = is_byte_level;
  options.fuses_unknown = TRY(flag_or(kModelPart, model, "fuse_unk", false));
  options.has_byte_tokens = TRY(flag_or(kModelPart, model, "byte_fallback", false));
  options.ignores_merges = TRY(flag_or(kModelPart, model, "ignore_merges", false));
  options.unknown_id = TRY(read_unknown_id(model, *vocabulary));
  const auto merges = TRY(read_json_merges(model, *vocabulary, is_byte_level));
  return SharedModel(std::make_shared<BpeModel>(options, vocabulary, merges));
}

Result<SharedModel> read_unigram(const Json& model, const Vocabulary& vocabulary) {
  const JsonArray& list = find(model, "vocab")->get_array();
  std::vector<double> scores;
  for (const Json& entry : list) {
    const Json& score = entry.get_array()[1];
    scores.push_back(score.is_double() ? score.get_double()
                                       : static_cast<double>(score.get_int64()));
  }
  UnigramOptions options;
  options.has_byte_tokens = TRY(flag_or(kModelPart, model, "byte_fallback", false));
  const auto unknown = get_int(model, "unk_id");
  const bool is_known = unknown.ok() && unknown.value() && *unknown.value() >= 0 &&
                        *unknown.value() < static_cast<int64_t>(list.size());
  if (!is_known) return corrupt_part(kModelPart, "has no unk_id in the vocabulary");
  options.unknown_id = static_cast<int32_t>(*unknown.value());
  return SharedModel(TRY(UnigramModel::make(options, vocabulary, std::move(scores))));
}

Result<SharedModel> read_word_piece(const Json& model,
                                    const std::shared_ptr<const Vocabulary>& vocabulary) {
  WordPieceOptions options;
  const auto unknown = TRY(read_unknown_id(model, *vocabulary));
  if (!unknown) return corrupt_part(kModelPart, "has no unk_token");
  options.unknown_id = *unknown;
  options.continuation_prefix =
      TRY(required_string(kModelPart, model, "continuing_subword_prefix"));
  const auto characters = get_int(model, "max_input_chars_per_word");
  if (!characters.ok()) return corrupt_part(kModelPart, "is wrong: " + characters.error().message);
  const int64_t most = characters.value().value_or(100);
  if (most < 0 || most > kWordCharactersMax) {
    return unsupported_part(kModelPart, "max_input_chars_per_word " + std::to_string(most));
  }
  options.word_characters_max = static_cast<size_t>(most);
  return SharedModel(std::make_shared<WordPieceModel>(std::move(options), vocabulary));
}

// [["<unk>", 0.0], ...]: the index is the id.
Result<Vocabulary> read_unigram_vocabulary(const JsonArray& list) {
  Vocabulary vocabulary(list.size());
  int64_t id = 0;
  for (const Json& entry : list) {
    const JsonArray* pair = entry.if_array();
    const bool is_pair = pair != nullptr && pair->size() == 2 && (*pair)[0].is_string() &&
                         ((*pair)[1].is_double() || (*pair)[1].is_int64());
    if (!is_pair) return corrupt_part(kModelPart, "has an entry that is not a token and a score");
    TRY(vocabulary.add(text_of((*pair)[0].get_string()), id++));
  }
  return vocabulary;
}

}  // namespace

// Files from before 2021 have no type; only BPE has merges.
Result<std::string_view> json_model_type(const Json& model) {
  if (find(model, "type") != nullptr) return type_of(kModelPart, model);
  if (find(model, "merges") != nullptr) return std::string_view("BPE");
  return corrupt_part(kModelPart, "has no type");
}

Result<Vocabulary> read_json_vocabulary(const Json& model, bool is_byte_level) {
  const Json* vocab = find(model, "vocab");
  if (TRY(json_model_type(model)) == "Unigram") {
    if (vocab == nullptr || !vocab->is_array()) return corrupt_part(kModelPart, "has no vocab");
    return read_unigram_vocabulary(vocab->get_array());
  }
  if (vocab == nullptr || !vocab->is_object()) return corrupt_part(kModelPart, "has no vocab");
  Vocabulary vocabulary(vocab->get_object().size());
  for (const auto& member : vocab->get_object()) {
    const std::string_view text(member.key().data(), member.key().size());
    const int64_t* id = member.value().if_int64();
    if (id == nullptr) return corrupt_part("vocabulary", "has an id that is not an integer");
    const auto bytes = is_byte_level ? bytes_of_alphabet(text) : std::nullopt;
    TRY(vocabulary.add(bytes ? std::string_view(*bytes) : text, *id));
  }
  return vocabulary;
}

Result<SharedModel> read_json_model(const Json& model,
                                    const std::shared_ptr<const Vocabulary>& vocabulary,
                                    bool is_byte_level) {
  const std::string_view type = TRY(json_model_type(model));
  if (type == "BPE") return read_bpe(model, vocabulary, is_byte_level);
  if (is_byte_level) return unsupported_part(kModelPart, std::string(type) + " of bytes");
  if (type == "Unigram") return read_unigram(model, *vocabulary);
  if (type == "WordPiece") return read_word_piece(model, vocabulary);
  return unsupported_part(kModelPart, type);
}

}  // namespace lockstep
