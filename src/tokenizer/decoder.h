// Decoder: the bytes that a token stands for. Immutable. It does what a tokenizer.json's chain
// Replace, ByteFallback, Fuse, Strip does, except that bytes which are no UTF-8 are left to the
// caller.
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

  std::string token_bytes(std::string_view token) const;
  // The whole text loses one space at its beginning: the one that the normalizer put there.
  bool strips_leading_space() const { return stage_ == Stage::kStripped; }

 private:
  // How far the chain is. A part that comes out of turn would mean something else.
  enum class Stage { kPerToken, kBytes, kFused, kStripped };

  Status add(const Json& value);
  Status add_strip(const Json& value);

  std::vector<Replacement> replacements_;
  bool has_byte_tokens_ = false;
  Stage stage_ = Stage::kPerToken;
};

}  // namespace lockstep
