// The operators, dots and brackets of templates, by Python's rules. Used by the interpreter and by
// filters.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"
#include "chat/jinja_syntax/jinja_ast.h"

namespace lockstep::jinja {

Result<Value> jinja_arithmetic(Heap& heap, Arithmetic operation, const Value& left,
                               const Value& right);
Result<Value> jinja_negate(const Value& value);
Result<bool> jinja_compare(Heap& heap, Comparison comparison, const Value& left,
                           const Value& right);
// item in container
Result<bool> jinja_contains(Heap& heap, const Value& container, const Value& item);

// object.name: a method or attribute first, then an element; undefined if there is neither.
Result<Value> jinja_attribute(Heap& heap, const Value& object, std::string_view name);
// object[key]: an element first, then an attribute.
Result<Value> jinja_subscript(Heap& heap, const Value& object, const Value& key);

struct SliceBounds {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
};
Result<Value> jinja_slice(Heap& heap, const Value& object, const SliceBounds& bounds);

// The items that a loop iterates over: elements, keys or characters. Empties a generator.
Result<std::vector<Value>> jinja_items(Heap& heap, const Value& value);
// len(value)
Result<int64_t> jinja_length(const Value& value);

// "%s and %d" % value
Result<Value> jinja_format(Heap& heap, const MarkedText& format, const Value& value);

}  // namespace lockstep::jinja
