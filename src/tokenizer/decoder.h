// Decoder: the bytes that a token stands for. Immutable. It does what a tokenizer.json's chain
// Replace, ByteFallback, Fuse, Strip does, or its ByteLevel, Metaspace or WordPiece, except that
// bytes which are no UTF-8 are left to the caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "tokenizer/replacement.h"

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
  // The whole text loses one space at its beginning: the one that the normalizer put there.
  bool strips_leading_space() const { return stage_ == Stage::kStripped; }
  bool is_byte_level() const { return is_byte_level_; }

 private:
  // How far the chain is. A part that comes out of turn would mean something else.
  enum class Stage { kPerToken, kBytes, kFused, kStripped };

  Status add(const Json& value);
  Status add_strip(const Json& value);
  Status add_metaspace(const Json& value);
  Status add_word_piece(const Json& value);

  std::vector<Replacement> replacements_;
  bool has_byte_tokens_ = false;
  bool is_byte_level_ = false;
  std::string continuation_;  // of WordPiece: a token that begins otherwise begins a word
  Stage stage_ = Stage::kPerToken;
};

}  // namespace lockstep
