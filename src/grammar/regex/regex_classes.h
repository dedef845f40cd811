// Named character classes of regular expressions: \d \w \s and the general categories of Unicode.
// Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/dfa/symbol_set.h"

namespace lockstep {

// `letter`: one of d D w W s S; ASCII digits and words, white space as in ECMA-262.
SymbolSet regex_class(char letter);

// A general category (L, Lu, Letter, Uppercase_Letter...), or Any, ASCII; nullopt for others.
std::optional<SymbolSet> unicode_property(std::string_view name);

}  // namespace lockstep
