// Converts values to text (Python's str and repr, json.dumps), and JSON to values. Marks of text
// are kept; characters that these functions add count as template text.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"
#include "chat/text/json_texts.h"
#include "json/json.h"

namespace lockstep {

// str(value): what {{ value }} prints. An undefined value is empty.
Result<MarkedText> jinja_str(JinjaHeap& heap, const JinjaValue& value);
// repr(value): as inside a printed list.
Result<MarkedText> jinja_repr(JinjaHeap& heap, const JinjaValue& value);
std::string python_float(double value);

struct DumpsOptions {  // the parameters of json.dumps and their defaults in chat templates
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // the indentation of one level
  std::optional<std::string> item_separator;
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<MarkedText> jinja_dumps(JinjaHeap& heap, const JinjaValue& value,
                               const DumpsOptions& options);

// Marks strings and keys with `is_from_input`. Objects in `texts` (may be null) keep their JSON
// text.
JinjaValue from_json_value(JinjaHeap& heap, const Json& json, bool is_from_input,
                           const JsonTexts* texts = nullptr);

}  // namespace lockstep
