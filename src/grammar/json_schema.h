// JSON Schema (draft 2020-12, and draft-07 where tools still send it) to a Grammar: which JSON
// texts a model may write. Every text that is allowed is valid; what cannot be enforced is refused
// with the keyword's name when strict, and otherwise left out with a warning.
//
// Narrower than validation: keys come in the order in which the schema names them, and a key that
// it does not name is allowed only where it says so (additionalProperties, patternProperties) or
// names none at all. Numbers under minimum, maximum or multipleOf have no exponents. White space is
// bounded. docs/grammar.md lists the keywords. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"
#include "json/json.h"

namespace lockstep {

enum class JsonSpace {
  kCompact,  // {"a":1,"b":[1,2]}
  // Also a space behind ":" and ",", and one line break with at most 40 spaces or 10 tabs between
  // the parts of an object or array: what models write by themselves, never without end.
  kBounded,
};

struct JsonSchemaOptions {
  bool is_strict = true;
  JsonSpace space = JsonSpace::kBounded;
  // What "#" of a $ref means, for a schema that is a part of another one; null: the schema itself.
  const Json* root = nullptr;
  bool only_objects = false;  // whatever else the schema allows
};

struct JsonSchemaGrammar {
  Grammar::Expression expression;
  std::vector<std::string> warnings;  // one sentence for each thing that is not enforced
};

// kUnsupported names the keyword; kInvalidArgument for what is no schema, or allows nothing.
Result<JsonSchemaGrammar> add_json_schema(Grammar& grammar, const Json& schema,
                                          const JsonSchemaOptions& options = {});

// Any JSON object ("json_object" of response_format).
Grammar::Expression add_json_object(Grammar& grammar, JsonSpace space = JsonSpace::kBounded);

}  // namespace lockstep
