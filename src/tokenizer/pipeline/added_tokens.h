// AddedTokens: finds the tokens that take precedence over the model's own: special ones (<s>) and
// plain ones that are never split. Immutable. Follows Hugging Face's AddedVocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text_hash.h"

namespace lockstep {

inline constexpr size_t kAddedTokenBytesMax = 1024;

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool is_special = false;
  bool takes_left_space = false;   // "lstrip": includes white space before it
  bool takes_right_space = false;  // "rstrip"
  bool is_single_word = false;     // not found next to a letter, digit or underscore
  bool is_normalized = false;      // matched after the normalizer
};

// A part of a text in which special tokens may be found.
struct SpecialRange {
  size_t begin;
  size_t end;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // Contents that are empty or invalid UTF-8 never match, so that matches never split a character.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };
  // The first match at or after `from`, the longest there; special tokens, with the white space
  // they include, only inside one of `ranges`, which are in order.
  std::optional<Match> next(std::string_view text, size_t from,
                            std::span<const SpecialRange> ranges) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t position,
                               const SpecialRange* range) const;

  std::unordered_map<std::string, AddedToken, TextHash, std::equal_to<>> tokens_;
  // The lengths of the tokens that begin with each byte, longest first.
  std::array<std::vector<size_t>, 256> lengths_;
};

}  // namespace lockstep
