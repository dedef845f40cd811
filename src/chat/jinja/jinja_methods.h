// Calls in a template: arguments, and the tables of filters, tests and methods by name. Used by the
// interpreter.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;

  // By keyword or position (from 0); null if not given.
  const Value* find(size_t place, std::string_view keyword) const;
  const Value* find(std::string_view keyword) const;
  bool flag(size_t place, std::string_view keyword, bool otherwise) const;
  // kUnsupported unless it is an integer.
  Result<int64_t> integer(size_t place, std::string_view keyword, int64_t otherwise) const;
  Result<const Value*> need(size_t place, std::string_view keyword) const;
};

// The name of the method in its table, which lives forever; empty if the object has none.
std::string_view find_method(const Value& object, std::string_view name);
Result<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments);

bool has_filter(std::string_view name);
// kUnsupported for an unknown name.
Result<Value> call_filter(Heap& heap, std::string_view name, const Value& subject,
                          const Arguments& arguments);
Result<bool> call_test(Heap& heap, std::string_view name, const Value& subject,
                       const Arguments& arguments);

}  // namespace lockstep::jinja
