// Decoder: the bytes of a token. Immutable. Equivalent to a tokenizer.json's chain Replace,
// ByteFallback, Fuse, Strip, or its ByteLevel, Metaspace or WordPiece, except that invalid UTF-8 is
// left to the caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "tokenizer/text/replacement.h"

namespace lockstep {

class Decoder {
 public:
  // The "decoder" of a tokenizer.json.
  static Result<Decoder> read(const Json* value);
  // "\u2581" is a space, "<0x0A>" a byte.
  static Decoder sentence_piece(bool strips_leading_space);
  // The tokens of a byte-level vocabulary, which are the bytes themselves.
  static Decoder byte_level();

  std::string token_bytes(std::string_view token) const;
  // Decoding removes one leading space of the whole text: the one that the normalizer added.
  bool strips_leading_space() const { return stage_ == Stage::kStripped; }
  bool is_byte_level() const { return is_byte_level_; }

 private:
  // Progress in the chain: a part out of order would have another meaning.
  enum class Stage { kPerToken, kBytes, kFused, kStripped };

  Status add(const Json& value);
  Status add_strip(const Json& value);
  Status add_metaspace(const Json& value);
  Status add_word_piece(const Json& value);

  std::vector<Replacement> replacements_;
  bool has_byte_tokens_ = false;
  bool is_byte_level_ = false;
  std::string continuation_;  // of WordPiece: a token without this prefix begins a word
  Stage stage_ = Stage::kPerToken;
};

}  // namespace lockstep
