// Converts JSON Schema (draft 2020-12, and draft-07 where tools still send it) to a Grammar of JSON
// texts. Every allowed text is valid; keywords that cannot be enforced are refused by name when
// strict, and otherwise ignored with a warning.
//
// Narrower than validation: keys come in the schema's order, and other keys are allowed only if it
// says so (additionalProperties, patternProperties) or names no keys. Numbers under minimum,
// maximum or multipleOf have no exponents. White space is bounded. docs/grammar.md lists the
// keywords. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/automaton/grammar.h"
#include "json/json.h"

namespace lockstep {

enum class JsonSpace {
  kCompact,  // {"a":1,"b":[1,2]}
  // Also a space after ":" and ",", and one line break with at most 40 spaces or 10 tabs between
  // the parts of an object or array: the layouts that models write, but bounded.
  kBounded,
};

// A notation other than JSON, without white space; see bare_notation.h.
struct BareNotation {
  Grammar::Expression quote;            // before and after a string
  std::vector<std::string> text_stops;  // no string contains one
  std::string key_stops;                // ASCII: a key with one of these is written as a string
};

struct JsonSchemaOptions {
  bool is_strict = true;
  JsonSpace space = JsonSpace::kBounded;
  // The schema that "#" in a $ref means, for a part of a larger schema; null: the schema itself.
  const Json* root = nullptr;
  bool only_objects = false;           // even if the schema allows other values
  const BareNotation* bare = nullptr;  // null: JSON; outlives the call
};

struct JsonSchemaGrammar {
  Grammar::Expression expression;
  std::vector<std::string> warnings;  // one sentence per requirement not enforced
};

// kUnsupported names the keyword; kInvalidArgument for an invalid or unsatisfiable schema.
Result<JsonSchemaGrammar> add_json_schema(Grammar& grammar, const Json& schema,
                                          const JsonSchemaOptions& options = {});

// Any JSON object ("json_object" of response_format).
Grammar::Expression add_json_object(Grammar& grammar, JsonSpace space = JsonSpace::kBounded);

}  // namespace lockstep
