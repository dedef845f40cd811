// Where a text is free: states of an automaton behind which any plain characters may follow, for
// ever. Masks are made ahead for them. Part of TokenMasks.
#pragma once

#include <vector>

#include "grammar/automaton.h"

namespace lockstep {

// `start` and all states that plain characters of a JSON string lead to from there (whole UTF-8
// without quotes, backslashes and control characters), if none of them leads nowhere and they are
// few; else none.
std::vector<GrammarAutomaton::StateId> states_of_free_text(GrammarAutomaton& automaton,
                                                           GrammarAutomaton::StateId start);
// The same with ASCII letters and digits alone.
std::vector<GrammarAutomaton::StateId> states_of_free_words(GrammarAutomaton& automaton,
                                                            GrammarAutomaton::StateId start);

}  // namespace lockstep
