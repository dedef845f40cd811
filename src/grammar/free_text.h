// Where a text is free: how many characters may follow a state of an automaton, whatever they are.
// Masks are made ahead for that. Part of TokenMasks.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/character_kinds.h"

namespace lockstep {

enum class FreeKind : uint8_t {
  kPlainCharacters,  // of a JSON string: whole UTF-8, no quote, backslash or control character
  kAsciiWords,       // letters and digits
};

struct FreeText {
  struct After {
    GrammarAutomaton::StateId state;
    uint32_t characters;
  };
  // So many characters may follow the state that was asked for; UINT32_MAX: for ever.
  uint32_t characters = 0;
  // The same for others that were looked at on the way.
  std::vector<After> after;
};

// Never more than is true; less where the states that follow are many.
FreeText free_text(GrammarAutomaton& automaton, GrammarAutomaton::StateId start, FreeKind kind);

// The ASCII characters that lead from a state back to it, so that any number of them may follow.
CharacterKinds staying_ascii(GrammarAutomaton& automaton, GrammarAutomaton::StateId state);
// Whether all others do. Never said if it is not so; not said where it takes long to find out.
bool beyond_ascii_stays(GrammarAutomaton& automaton, GrammarAutomaton::StateId state);

}  // namespace lockstep
