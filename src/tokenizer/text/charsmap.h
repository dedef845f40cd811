// Charsmap: SentencePiece's compiled normalization table, "precompiled_charsmap": replaces the
// longest match of a trie at each position. Immutable. Format: a darts-clone double-array trie and
// the replacements, sentencepiece/src/normalizer.cc and https://github.com/s-yata/darts-clone
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kCharsmapBytesMax = 16 << 20;

class Charsmap {
 public:
  // kCorrupt if the trie or a replacement does not lie inside `bytes`.
  static Result<Charsmap> parse(std::string_view bytes);

  // `text` is valid UTF-8, and so is the result. Replacements that would exceed `bytes_max` are
  // skipped.
  std::string apply(std::string_view text, size_t bytes_max = std::string::npos) const;

 private:
  struct Found {
    size_t bytes = 0;  // of the text; 0: no match
    size_t replacement = 0;
  };
  Found longest_at(std::string_view text) const;
  std::string_view replacement_of(const Found& found) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace lockstep
