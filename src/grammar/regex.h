// Regular expressions as JSON Schema and clients write them (ECMA-262 with the u flag): groups,
// classes, \d \w \s, \p{L}, counted repetition, ^ and $. What no automaton can do - lookaround,
// backreferences, word boundaries - is refused by name. Pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/dfa.h"
#include "grammar/grammar.h"

namespace lockstep {

enum class RegexMatch {
  kWhole,   // the text is a match
  kSearch,  // the text contains a match, as "pattern" of JSON Schema means it
};

// An automaton over code points. kInvalidArgument for what is no regex, kUnsupported for what
// cannot be done, kExhausted for the limits of limits.h; all say where.
Result<Dfa> regex_dfa(std::string_view pattern, RegexMatch match, WorkBudget& budget);

// A text (UTF-8) that the whole pattern matches.
Result<Grammar::Expression> add_regex(Grammar& grammar, std::string_view pattern);

}  // namespace lockstep
