// Constraints on answers: a JSON text, sent with a request, that becomes a grammar on the machine
// that chooses the tokens. Written by chat/constraints/answer_constraint.h and by the server,
// compiled by the engine. Pure functions.
//
//   {"json_schema": SCHEMA, "strict": true}    {"json_object": true}
//   {"regex": "[a-z]+"}                        {"ebnf": "root ::= \"yes\" | \"no\""}
//
// These can also be parts of larger constraints:
//
//   {"text": "abc"}              these characters
//   {"marker": "<tool_call>"}    special tokens if the tokenizer has them, else the characters
//   {"free": {"without": ["<tool_call>"], "unlike": "^\\{"}}
//                                any text that contains none of these and no match of the
//                                regex; both are optional
//   {"sequence": [PART...]}      {"choice": [PART...]}
//   {"repeat": PART, "min": 0, "max": 3}
//   {"rules": {"name": PART...}, "root": PART}, and inside them {"rule": "name"}
//   {"json_schema": SCHEMA, "strict": false, "object": true, "of": "the parameters of \"f\""}
//                                "object": only objects; "of": the schema's owner, for messages
//   {"json_schema": SCHEMA, "bare": {"quote": MARKER, "text_stops": [...], "key_stops": "..."}}
//                                the same in another notation, see bare_notation.h
//   {"tagged": SCHEMA, ...}      an object as tags instead of JSON, see tagged_object.h
//
// Ordinary text never contains special tokens: only markers can. If the tokenizer puts a space
// before the first word of a text, an answer may begin with one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton/compiled_grammar.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// Errors: kInvalidArgument (also if nothing satisfies it), kUnsupported, which names the keyword of
// a strict schema, and kExhausted, which names the limit.
Result<std::shared_ptr<const CompiledGrammar>> compile_constraint(std::string_view spec,
                                                                  const Tokenizer& tokenizer);

// The errors of compile_constraint(), else a warning for each requirement that is not enforced.
Result<std::vector<std::string>> check_constraint(std::string_view spec,
                                                  const Tokenizer& tokenizer);

}  // namespace lockstep
