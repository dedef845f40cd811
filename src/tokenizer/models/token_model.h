// TokenModel: converts one piece of text to token ids: BPE, unigram or WordPiece. Immutable.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the ids of `piece`, which is valid UTF-8 or, for a byte-level model, any bytes.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
};

}  // namespace lockstep
