// PreTokenizer: cuts a normalized text into pieces across which no tokens are merged. Immutable.
// This version knows none (one piece) and Metaspace, which writes spaces as "\u2581".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace lockstep {

class PreTokenizer {
 public:
  // The "pre_tokenizer" of a tokenizer.json, or null for one that leaves the text whole.
  static Result<PreTokenizer> read(const Json* value);

  // `starts_input`: nothing, not even an added token, comes before `text`. No piece is empty.
  std::vector<std::string> cut(std::string text, bool starts_input) const;

 private:
  enum class Prepend { kNever, kFirst, kAlways };

  bool is_metaspace_ = false;
  std::string mark_;  // replaces each space
  Prepend prepend_ = Prepend::kNever;
  bool splits_ = false;  // before each mark
};

}  // namespace lockstep
