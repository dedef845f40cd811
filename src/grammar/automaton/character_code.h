// The bytes of one character of a set, as an automaton: UTF-8, or any form of it in a JSON string
// (RFC 8259, section 7: plain, short escapes such as \n, \u with four digits, two of those for
// characters beyond U+FFFF; ASCII that needs no escape is only plain, unless the set has all
// characters). Not deterministic below "\u": several edges may share a byte.
#pragma once

#include "grammar/automaton/grammar.h"
#include "grammar/dfa/dfa.h"

namespace lockstep {

// `set` holds no surrogates.
Dfa character_code(const SymbolSet& set, CharacterCoding coding);

}  // namespace lockstep
