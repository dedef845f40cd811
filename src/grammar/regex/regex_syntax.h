// The syntax of regular expressions (regex.h) as a tree. Internal to the regex front end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/limits.h"
#include "grammar/dfa/symbol_set.h"

namespace lockstep {

struct RegexNode {
  enum class Kind : uint8_t { kSet, kSequence, kChoice, kRepeat, kBegin, kEnd };
  Kind kind = Kind::kSequence;
  SymbolSet set;
  uint32_t min = 0;
  uint32_t max = 0;  // UINT32_MAX: unlimited
  std::vector<RegexNode> parts;
};

Result<RegexNode> parse_regex(std::string_view pattern, WorkBudget& budget);

}  // namespace lockstep
