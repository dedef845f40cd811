#include "tokenizer/pipeline/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/text/unicode.h"

namespace lockstep {
namespace {

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (end < text.size() && is_word_character(first_utf8_character(text.substr(end)).code_point)) {
    return true;
  }
  if (begin == 0) return false;
  size_t previous = begin - 1;
  while (previous > 0 && (static_cast<uint8_t>(text[previous]) & 0xC0) == 0x80) --previous;
  return is_word_character(first_utf8_character(text.substr(previous)).code_point);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.content.empty() || !is_valid_utf8(token.content)) continue;
    auto& lengths = lengths_[static_cast<uint8_t>(token.content[0])];
    const size_t length = token.content.size();
    if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) {
      lengths.push_back(length);
    }
    std::string content = token.content;
    tokens_.insert_or_assign(std::move(content), std::move(token));
  }
  for (auto& lengths : lengths_) std::sort(lengths.begin(), lengths.end(), std::greater<>());
}

std::optional<AddedTokens::Match> AddedTokens::next(std::string_view text, size_t from,
                                                    std::span<const SpecialRange> ranges) const {
  if (tokens_.empty()) return std::nullopt;
  size_t range_index = 0;
  for (size_t position = from; position < text.size(); ++position) {
    if (lengths_[static_cast<uint8_t>(text[position])].empty()) continue;
    while (range_index < ranges.size() && ranges[range_index].end <= position) ++range_index;
    const bool is_inside = range_index < ranges.size() && ranges[range_index].begin <= position;
    const SpecialRange* range = is_inside ? &ranges[range_index] : nullptr;
    const AddedToken* token = longest_at(text, position, range);
    if (token == nullptr) continue;
    Match match = {position, position + token->content.size(), token->id};
    const SpecialRange around = token->is_special ? *range : SpecialRange{0, text.size()};
    if (token->takes_left_space) {
      const size_t begin = std::max(from, around.begin);
      match.begin -= trailing_white_space(text.substr(begin, position - begin));
    }
    if (token->takes_right_space) {
      match.end += leading_white_space(text.substr(match.end, around.end - match.end));
    }
    return match;
  }
  return std::nullopt;
}

// `range`: the one that contains `position`, or null.
const AddedToken* AddedTokens::longest_at(std::string_view text, size_t position,
                                          const SpecialRange* range) const {
  for (const size_t length : lengths_[static_cast<uint8_t>(text[position])]) {
    if (length > text.size() - position) continue;
    const auto found = tokens_.find(text.substr(position, length));
    if (found == tokens_.end()) continue;
    const AddedToken& token = found->second;
    if (token.is_special && (range == nullptr || position + length > range->end)) continue;
    if (token.is_single_word && touches_word(text, position, position + length)) continue;
    return &token;
  }
  return nullptr;
}

}  // namespace lockstep
