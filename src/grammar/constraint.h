// Constraints: what an answer may be, as one JSON text that travels with a request and becomes a
// grammar on the machine that chooses the tokens. Written by chat/answer_constraint.h and by the
// server, compiled by the engine. Pure functions.
//
//   {"json_schema": SCHEMA, "strict": true}    {"json_object": true}
//   {"regex": "[a-z]+"}                        {"ebnf": "root ::= \"yes\" | \"no\""}
//
// These are also the parts of what has more structure:
//
//   {"text": "abc"}              these characters
//   {"marker": "<tool_call>"}    special tokens where the tokenizer has them, else the characters
//   {"free": {"without": ["<tool_call>"], "unlike": "^\\{"}}
//                                any text in which none of these occurs and in which the regex
//                                finds nothing; both may be left out
//   {"sequence": [PART...]}      {"choice": [PART...]}
//   {"repeat": PART, "min": 0, "max": 3}
//   {"rules": {"name": PART...}, "root": PART}, and inside of them {"rule": "name"}
//   {"json_schema": SCHEMA, "strict": false, "object": true, "of": "the parameters of \"f\""}
//                                "object": nothing but an object; "of": who it is, for messages
//   {"tagged": SCHEMA, ...}      an object as tags instead of JSON, see tagged_object.h
//
// Ordinary text never contains special tokens: what is none of the markers cannot be written. Where
// a tokenizer puts a space before the first word of a text, an answer may begin with one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/compiled_grammar.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// Errors: kInvalidArgument (also for what nothing satisfies), kUnsupported, which names the keyword
// of a strict schema, and kExhausted, which names the limit.
Result<std::shared_ptr<const CompiledGrammar>> compile_constraint(std::string_view spec,
                                                                  const Tokenizer& tokenizer);

// The errors of compile_constraint(), else one sentence for each thing that is not enforced.
Result<std::vector<std::string>> check_constraint(std::string_view spec,
                                                  const Tokenizer& tokenizer);

}  // namespace lockstep
