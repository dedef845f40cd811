// An object as tags, one for each key, with its value as text: how some families write the
// arguments of a call (chat/tool_format.h, kTaggedValues). Strings stand there as they are, without
// quotes; what else a value can be is JSON. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "json/json_types.h"

namespace lockstep {

// before_key KEY before_text TEXT after_value | before_key KEY before_json JSON after_value
struct TaggedForm {
  Grammar::Expression before_key;
  Grammar::Expression before_text;
  Grammar::Expression before_json;
  Grammar::Expression after_value;
  std::vector<std::string> key_stops;   // no key contains one
  std::vector<std::string> text_stops;  // no text contains one
  // As which types the reader takes the values of a key, kJsonAny of keys that are not here. Where
  // it may take a value for a string or for something else, texts that it would take for something
  // else are not allowed.
  std::map<std::string, JsonTypes> types;
  bool is_told = false;  // before_text and before_json say which it is
};

// kUnsupported where a required key cannot be written so.
Result<JsonSchemaGrammar> add_tagged_object(Grammar& grammar, const Json& schema,
                                            const TaggedForm& form,
                                            const JsonSchemaOptions& options = {});

}  // namespace lockstep
