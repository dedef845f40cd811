// Text that ends at a marker, as in tool-call formats: free text, raw parameter values. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/automaton/grammar.h"

namespace lockstep {

// Any UTF-8 text that contains none of `markers`. It may end with the beginning of one:
//   grammar.sequence({TRY(text_without(grammar, {"</parameter>"})),
//                     grammar.literal("</parameter>")})
// matches up to the first marker.
Result<Grammar::Expression> text_without(Grammar& grammar, const std::vector<std::string>& markers);

// The same as an automaton over code points, to be combined with others.
Result<Dfa> words_without(const std::vector<std::string>& markers, WorkBudget& budget);

}  // namespace lockstep
