// AddedTokens: finds the tokens that stand above the model's own in a text: special ones (<s>) and
// plain ones that are never cut up. Immutable. The rules are those of Hugging Face's
// AddedVocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep {

inline constexpr size_t kAddedTokenBytesMax = 1024;

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool is_special = false;
  bool takes_left_space = false;   // "lstrip": white space before it belongs to it
  bool takes_right_space = false;  // "rstrip"
  bool is_normalized = false;      // looked for after the normalizer
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // Empty contents are never found.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };
  // The first match at or behind `from`, the longest there; special tokens only if asked for.
  std::optional<Match> next(std::string_view text, size_t from, bool with_special) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t position, bool with_special) const;

  std::unordered_map<std::string, AddedToken> tokens_;
  // The lengths of the tokens that begin with each byte, longest first.
  std::array<std::vector<size_t>, 256> lengths_;
};

}  // namespace lockstep
