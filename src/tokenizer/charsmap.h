// Charsmap: SentencePiece's compiled normalization table, "precompiled_charsmap": for the longest
// text that a trie knows at a position, what is written instead. Immutable. Format: a double array
// trie of darts-clone and the replacements, sentencepiece/src/normalizer.cc and
// https://github.com/s-yata/darts-clone
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

  // `text` is valid UTF-8, and so is the result.
  std::string apply(std::string_view text) const;

 private:
  struct Found {
    size_t bytes = 0;  // of the text; 0: nothing is known here
    size_t replacement = 0;
  };
  Found longest_at(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace lockstep
