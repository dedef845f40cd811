// The bytes of one character of a set, as an automaton: UTF-8, or what may stand for it inside a
// JSON string (RFC 8259, section 7: plain, \n and its like, \u with four digits, two of those for
// characters beyond U+FFFF; plain ASCII only in sets that are not of all characters). Not
// deterministic below "\u": several edges may share a byte.
#pragma once

#include "grammar/dfa.h"
#include "grammar/grammar.h"

namespace lockstep {

// `set` holds no surrogates.
Dfa character_code(const SymbolSet& set, CharacterCoding coding);

}  // namespace lockstep
