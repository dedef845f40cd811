// The operators, dots and brackets of templates, by Python's rules. Used by the interpreter and by
// filters.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"
#include "chat/jinja_syntax/jinja_ast.h"

namespace lockstep {

Result<JinjaValue> jinja_arithmetic(JinjaHeap& heap, JinjaArithmetic operation,
                                    const JinjaValue& left, const JinjaValue& right);
Result<JinjaValue> jinja_negate(const JinjaValue& value);
Result<bool> jinja_compare(JinjaHeap& heap, JinjaComparison comparison, const JinjaValue& left,
                           const JinjaValue& right);
// item in container
Result<bool> jinja_contains(JinjaHeap& heap, const JinjaValue& container, const JinjaValue& item);

// object.name: a method or attribute first, then an element; undefined if there is neither.
Result<JinjaValue> jinja_attribute(JinjaHeap& heap, const JinjaValue& object,
                                   std::string_view name);
// object[key]: an element first, then an attribute.
Result<JinjaValue> jinja_subscript(JinjaHeap& heap, const JinjaValue& object,
                                   const JinjaValue& key);

struct JinjaSliceBounds {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
};
Result<JinjaValue> jinja_slice(JinjaHeap& heap, const JinjaValue& object,
                               const JinjaSliceBounds& bounds);

// The items that a loop iterates over: elements, keys or characters. Empties a generator.
Result<std::vector<JinjaValue>> jinja_items(JinjaHeap& heap, const JinjaValue& value);
// len(value)
Result<int64_t> jinja_length(const JinjaValue& value);

// "%s and %d" % value
Result<JinjaValue> jinja_format(JinjaHeap& heap, const MarkedText& format, const JinjaValue& value);

}  // namespace lockstep
