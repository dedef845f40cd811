// Grammars as text, in the notation of llama.cpp's GBNF files:
//
//   root  ::= "yes" | "no" tail{1,3}   # the rule "root" is the whole text
//   tail  ::= [a-z0-9]+ [^"\\] . <|im_end|> <[1234]>
//
// Literals and classes have the escapes \n \t \r \" \\ \[ \] \- \xHH \uHHHH \UHHHHHHHH; `.` is any
// character; ( ) group, | chooses, * + ? {m} {m,} {m,n} repeat. A rule continues until the next one
// begins. `<[1234]>` is the special token with that id, `<|name|>` the one with that name. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "grammar/automaton/grammar.h"

namespace lockstep {

// The id of a special token by its printed form, such as "<|im_end|>"; nullopt if there is none.
using SpecialTokenId = std::function<std::optional<int32_t>(std::string_view)>;

// Errors name the line. Without `special_token` tokens cannot be named.
Result<Grammar::Expression> add_ebnf(Grammar& grammar, std::string_view text,
                                     const SpecialTokenId& special_token = nullptr);

}  // namespace lockstep
