// An object as tags, one per key, with its value as text: how some families write the arguments of
// a call (chat/tools/tool_format.h, kTaggedValues). Strings are written without quotes, other
// values as JSON. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grammar/automaton/grammar.h"
#include "grammar/schema/json_schema.h"
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
  // The types that the reader accepts for a key's value; kJsonAny for other keys. If these include
  // strings and others, texts that the reader would take for one of the others are not allowed.
  std::map<std::string, JsonTypes> types;
  bool is_told = false;  // before_text and before_json tell which it is
};

// kUnsupported if a required key cannot be written in this form.
Result<JsonSchemaGrammar> add_tagged_object(Grammar& grammar, const Json& schema,
                                            const TaggedForm& form,
                                            const JsonSchemaOptions& options = {});

}  // namespace lockstep
