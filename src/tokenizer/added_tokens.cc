#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/utf8.h"

namespace lockstep {
namespace {

// Unicode's White_Space property, as Rust's char::is_whitespace has it.
bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

size_t leading_white_space(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(bytes));
    if (!is_white_space(character.code_point)) break;
    bytes += character.bytes;
  }
  return bytes;
}

size_t trailing_white_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t previous = begin - 1;
    while (previous > 0 && (static_cast<uint8_t>(text[previous]) & 0xC0) == 0x80) --previous;
    if (!is_white_space(first_utf8_character(text.substr(previous)).code_point)) break;
    begin = previous;
  }
  return text.size() - begin;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
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
                                                    bool with_special) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t position = from; position < text.size(); ++position) {
    const AddedToken* token = longest_at(text, position, with_special);
    if (token == nullptr) continue;
    Match match = {position, position + token->content.size(), token->id};
    if (token->takes_left_space) {
      match.begin -= trailing_white_space(text.substr(from, position - from));
    }
    if (token->takes_right_space) match.end += leading_white_space(text.substr(match.end));
    return match;
  }
  return std::nullopt;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t position,
                                          bool with_special) const {
  for (const size_t length : lengths_[static_cast<uint8_t>(text[position])]) {
    if (length > text.size() - position) continue;
    const auto found = tokens_.find(std::string(text.substr(position, length)));
    if (found == tokens_.end()) continue;
    if (with_special || !found->second.is_special) return &found->second;
  }
  return nullptr;
}

}  // namespace lockstep
