// Converts values to text (Python's str and repr, json.dumps), and JSON to values. Marks of text
// are kept; characters that these functions add count as template text.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"
#include "chat/text/json_texts.h"
#include "json/json.h"

namespace lockstep::jinja {

// str(value): what {{ value }} prints. An undefined value is empty.
Result<MarkedText> jinja_str(Heap& heap, const Value& value);
// repr(value): as inside a printed list.
Result<MarkedText> jinja_repr(Heap& heap, const Value& value);
std::string python_float(double value);

struct DumpsOptions {  // the parameters of json.dumps and their defaults in chat templates
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // the indentation of one level
  std::optional<std::string> item_separator;
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<MarkedText> jinja_dumps(Heap& heap, const Value& value, const DumpsOptions& options);

// Marks strings and keys with `is_from_input`. Objects in `texts` (may be null) keep their JSON
// text.
Value from_json_value(Heap& heap, const Json& json, bool is_from_input,
                      const JsonTexts* texts = nullptr);

}  // namespace lockstep::jinja
