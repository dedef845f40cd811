// Free text: how many arbitrary characters may follow a state of an automaton, so that prepared
// masks can be used. Part of TokenMasks.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/automaton/automaton.h"
#include "grammar/dfa/character_kinds.h"

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
  // Arbitrary characters that may follow the start state; UINT32_MAX: unlimited.
  uint32_t characters = 0;
  // The same for other states visited on the way.
  std::vector<After> after;
};

// A lower bound; lower than possible if many states follow.
FreeText free_text(GrammarAutomaton& automaton, GrammarAutomaton::StateId start, FreeKind kind);

// The ASCII characters that lead from a state back to it, so any number of them may follow.
CharacterKinds staying_ascii(GrammarAutomaton& automaton, GrammarAutomaton::StateId state);
// Whether all other characters do. False also if that takes too long to determine.
bool beyond_ascii_stays(GrammarAutomaton& automaton, GrammarAutomaton::StateId state);

}  // namespace lockstep
