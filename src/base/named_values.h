// Enum values with names on the command line and in messages: one table for both directions.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace lockstep {

template <class Value, size_t kCount>
using NamedValues = std::array<std::pair<Value, std::string_view>, kCount>;

// Empty for a value that is not in the table.
template <class Value, size_t kCount>
std::string_view name_in(const NamedValues<Value, kCount>& values, Value value) {
  for (const auto& [known, name] : values) {
    if (value == known) return name;
  }
  return "";
}

// "a, b or c", from the value at `first` on.
template <class Value, size_t kCount>
std::string names_listed(const NamedValues<Value, kCount>& values, size_t first = 0) {
  std::string all;
  for (size_t i = first; i < kCount; ++i) {
    if (i > first) all += i + 1 == kCount ? " or " : ", ";
    all += values[i].second;
  }
  return all;
}

// kInvalidArgument: "unknown <what> 'x'; choose a, b or c".
template <class Value, size_t kCount>
Result<Value> value_named(const NamedValues<Value, kCount>& values, std::string_view name,
                          std::string_view what) {
  for (const auto& [value, known] : values) {
    if (name == known) return value;
  }
  return Error{ErrorCode::kInvalidArgument, "unknown " + std::string(what) + " '" +
                                                std::string(name) + "'; choose " +
                                                names_listed(values)};
}

}  // namespace lockstep
