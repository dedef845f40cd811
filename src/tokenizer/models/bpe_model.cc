#include "tokenizer/models/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr std::string_view kBpeSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr size_t kSplitTokenBytesMax = 512;  // longer tokens are not split into pairs to merge

// "x\u2581": a mark after another character.
bool reaches_over_words(std::string_view text) {
  bool follows_other = false;
  while (!text.empty()) {
    const bool is_mark = text.starts_with(kBpeSpaceMark);
    if (is_mark && follows_other) return true;
    follows_other |= !is_mark;
    text.remove_prefix(is_mark ? kBpeSpaceMark.size() : 1);
  }
  return false;
}

// The end of the first word of `text`: where a mark follows another character.
size_t word_end(std::string_view text) {
  size_t position = 0;
  while (text.substr(position).starts_with(kBpeSpaceMark)) position += kBpeSpaceMark.size();
  return std::min(text.find(kBpeSpaceMark, position), text.size());
}

bool has_separate_words(const Vocabulary& vocabulary) {
  if (!vocabulary.find(kBpeSpaceMark)) return false;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const auto text = vocabulary.text(id);
    if (text && !vocabulary.is_hidden(id) && reaches_over_words(*text)) return false;
  }
  return true;
}

}  // namespace

BpeModel::BpeModel(BpeOptions options, std::shared_ptr<const Vocabulary> vocabulary,
                   const std::vector<PairMerger::Merge>& merges)
    : options_(options), vocabulary_(std::move(vocabulary)), merger_(merges) {
  for (int byte = 0; byte < 256; ++byte) {
    if (options_.is_byte_level) {
      const char text = static_cast<char>(byte);
      byte_ids_[byte] = vocabulary_->find({&text, 1});
    } else if (options_.has_byte_tokens) {
      byte_ids_[byte] = vocabulary_->find(fmt::format("<0x{:02X}>", byte));
    }
  }
  has_separate_words_ =
      !options_.is_byte_level && !options_.ignores_merges && has_separate_words(*vocabulary_);
}

void BpeModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (!has_separate_words_) {
    encode_word(piece, ids);
    return;
  }
  while (!piece.empty()) {
    const size_t end = word_end(piece);
    encode_word(piece.substr(0, end), ids);
    piece.remove_prefix(end);
  }
}

void BpeModel::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (options_.ignores_merges) {
    if (const auto id = vocabulary_->find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<int32_t> symbols;
  symbols.reserve(word.size());
  if (options_.is_byte_level) {
    for (const char byte : word) {
      const auto id = byte_ids_[static_cast<uint8_t>(byte)];
      if (id || options_.unknown_id) symbols.push_back(id ? *id : *options_.unknown_id);
    }
  } else {
    append_characters(word, symbols);
  }
  merger_.merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void BpeModel::append_characters(std::string_view word, std::vector<int32_t>& symbols) const {
  bool follows_unknown = false;
  while (!word.empty()) {
    const std::string_view character = word.substr(0, first_utf8_character(word).bytes);
    word.remove_prefix(character.size());
    bool is_unknown = false;
    if (const auto id = vocabulary_->find(character)) {
      symbols.push_back(*id);
    } else if (!append_bytes(character, symbols) && options_.unknown_id) {
      is_unknown = true;
      if (!follows_unknown || !options_.fuses_unknown) symbols.push_back(*options_.unknown_id);
    }
    follows_unknown = is_unknown;
  }
}

// False if the vocabulary has no token for one of the bytes.
bool BpeModel::append_bytes(std::string_view character, std::vector<int32_t>& symbols) const {
  const size_t count = symbols.size();
  for (const char byte : character) {
    const auto id = byte_ids_[static_cast<uint8_t>(byte)];
    if (!id) {
      symbols.resize(count);
      return false;
    }
    symbols.push_back(*id);
  }
  return true;
}

std::vector<PairMerger::Merge> merges_by_rank(const Vocabulary& vocabulary,
                                              const std::vector<int32_t>& ids,
                                              const std::vector<int32_t>& ranks) {
  std::vector<PairMerger::Merge> merges;
  merges.reserve(ids.size() * 2);
  for (const int32_t id : ids) {
    const std::string_view text = *vocabulary.text(id);
    if (text.size() > kSplitTokenBytesMax) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = vocabulary.find(text.substr(0, cut));
      if (!left || ranks[static_cast<size_t>(*left)] < 0) continue;
      const auto right = vocabulary.find(text.substr(cut));
      if (!right || ranks[static_cast<size_t>(*right)] < 0) continue;
      merges.push_back({*left, *right, id, ranks[static_cast<size_t>(id)]});
    }
  }
  return merges;
}

}  // namespace lockstep
