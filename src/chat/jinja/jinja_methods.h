// Calls in a template: arguments, and the tables of filters, tests and methods by name. Used by the
// interpreter.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_value.h"

namespace lockstep {

struct JinjaArguments {
  std::vector<JinjaValue> positional;
  std::vector<std::pair<std::string_view, JinjaValue>> keywords;

  // By keyword or position (from 0); null if not given.
  const JinjaValue* find(size_t place, std::string_view keyword) const;
  const JinjaValue* find(std::string_view keyword) const;
  bool flag(size_t place, std::string_view keyword, bool otherwise) const;
  // kUnsupported unless it is an integer.
  Result<int64_t> integer(size_t place, std::string_view keyword, int64_t otherwise) const;
  Result<const JinjaValue*> need(size_t place, std::string_view keyword) const;
};

// The name of the method in its table, which lives forever; empty if the object has none.
std::string_view find_method(const JinjaValue& object, std::string_view name);
Result<JinjaValue> call_method(JinjaHeap& heap, const JinjaMethod& method,
                               const JinjaArguments& arguments);

bool has_filter(std::string_view name);
// kUnsupported for an unknown name.
Result<JinjaValue> call_filter(JinjaHeap& heap, std::string_view name, const JinjaValue& subject,
                               const JinjaArguments& arguments);
Result<bool> call_test(JinjaHeap& heap, std::string_view name, const JinjaValue& subject,
                       const JinjaArguments& arguments);

}  // namespace lockstep
