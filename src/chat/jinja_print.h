// How values become text: Python's str and repr, json.dumps, and JSON to values and back. Marks of
// text are kept; what these functions add counts as template text.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/jinja_value.h"
#include "json/json.h"

namespace lockstep {

// str(value): what {{ value }} prints. An undefined value is empty.
Result<MarkedText> jinja_str(JinjaHeap& heap, const JinjaValue& value);
// repr(value): as inside a printed list.
Result<MarkedText> jinja_repr(JinjaHeap& heap, const JinjaValue& value);
std::string python_float(double value);

struct DumpsOptions {  // the parameters of json.dumps and their defaults in chat templates
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // what one level is indented by
  std::optional<std::string> item_separator;
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<MarkedText> jinja_dumps(JinjaHeap& heap, const JinjaValue& value,
                               const DumpsOptions& options);

// Strings and keys are marked as given. Objects that `texts` (may be null) names keep their texts.
JinjaValue from_json_value(JinjaHeap& heap, const Json& json, bool is_from_input,
                           const JsonTexts* texts = nullptr);

}  // namespace lockstep
