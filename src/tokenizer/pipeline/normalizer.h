// Normalizer: transforms a text before it is split into tokens. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/regex.h"
#include "tokenizer/text/replacement.h"
#include "tokenizer/text/unicode.h"

namespace lockstep {

class Normalizer {
 public:
  // An empty text stays empty: nothing is prepended to it.
  struct Prepend {
    std::string content;
  };
  struct ReplaceRegex {
    std::shared_ptr<const Regex> regex;
    std::string content;
  };
  struct Lowercase {};
  struct StripAccents {};
  struct Strip {
    bool left;
    bool right;
  };
  struct Bert {
    bool cleans_text;
    bool spaces_han;
    bool strips_accents;
    bool lowers;
  };
  // Strips white space at both ends and collapses runs of spaces.
  struct RemoveExtraSpaces {};
  using Step = std::variant<Prepend, Replacement, ReplaceRegex, NormalForm, Lowercase, StripAccents,
                            Strip, Bert, RemoveExtraSpaces, std::shared_ptr<const Charsmap>>;

  // The "normalizer" of a tokenizer.json, or null for one that does nothing.
  static Result<Normalizer> read(const Json* value);
  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // `text` is valid UTF-8, and so is the result.
  std::string apply(std::string_view text) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace lockstep
