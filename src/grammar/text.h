// Text that ends at a marker, as tool-call formats have it: free text, raw parameter values. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"

namespace lockstep {

// Any UTF-8 text in which none of `markers` occurs. It may end with the beginning of one:
//   grammar.sequence({TRY(text_without(grammar, {"</parameter>"})),
//   grammar.literal("</parameter>")})
// matches up to the first marker.
Result<Grammar::Expression> text_without(Grammar& grammar, const std::vector<std::string>& markers);

// The same as an automaton over code points, to be joined with others.
Result<Dfa> words_without(const std::vector<std::string>& markers);

}  // namespace lockstep
