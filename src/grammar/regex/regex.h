// Regular expressions as JSON Schema and clients write them (ECMA-262 with the u flag): groups,
// classes, \d \w \s, \p{L}, counted repetition, ^ and $. Features that no automaton can express -
// lookaround, backreferences, word boundaries - are refused by name. Pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/automaton/grammar.h"
#include "grammar/dfa/dfa.h"

namespace lockstep {

enum class RegexMatch {
  kWhole,   // the text is a match
  kSearch,  // the text contains a match, as for "pattern" in JSON Schema
};

// An automaton over code points. kInvalidArgument for an invalid regex, kUnsupported for
// unsupported features, kExhausted for the limits of limits.h; all name the place.
Result<Dfa> regex_dfa(std::string_view pattern, RegexMatch match, WorkBudget& budget);

// A text (UTF-8) that the whole pattern matches.
Result<Grammar::Expression> add_regex(Grammar& grammar, std::string_view pattern);

}  // namespace lockstep
