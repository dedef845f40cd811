// Normalizer: what is done to a text before it is cut into tokens. Immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "tokenizer/replacement.h"

namespace lockstep {

class Normalizer {
 public:
  // The "normalizer" of a tokenizer.json, or null for one that does nothing.
  static Result<Normalizer> read(const Json* value);

  // An empty text stays empty: nothing is prepended to it.
  std::string apply(std::string_view text) const;

 private:
  // A step without a pattern prepends its content.
  std::vector<Replacement> steps_;

  Status add(const Json& value);
  Status add_sequence(const Json& value);
};

}  // namespace lockstep
