// Vocabulary: token texts and their ids, as the tokenizer.json has them (bytes as "<0x0A>", spaces
// as "\u2581"). Immutable after it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/json.h"

namespace lockstep {

inline constexpr int32_t kTokenIdMax = (1 << 22) - 1;  // the largest known vocabularies have 2^18

class Vocabulary {
 public:
  // The "vocab" object of a model: text -> id.
  static Result<Vocabulary> read(const Json* vocab);

  // Adds a token that the model's vocabulary does not have. kCorrupt if the id is another token's.
  Status add(std::string_view text, int64_t id);

  // The largest id + 1; there may be holes.
  int size() const { return static_cast<int>(texts_.size()); }
  std::optional<int32_t> find(std::string_view text) const;
  // Null for an id that no token has.
  const std::string* text(int32_t id) const;

 private:
  std::vector<std::optional<std::string>> texts_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace lockstep
