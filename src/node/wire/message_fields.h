// Building blocks of messages between a node and its workers: plain bytes, and JSON with required
// fields. Used by the sources of node/wire. Pure functions; invalid input is kCorrupt.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

Error corrupt_message(std::string_view what);

inline constexpr int kErrorCodeCount = static_cast<int>(ErrorCode::kInternal) + 1;

// Plain values, concatenated.
template <class... Values>
std::string pack(const Values&... values) {
  static_assert((std::is_trivially_copyable_v<Values> && ...));
  std::string bytes;
  bytes.reserve((sizeof(Values) + ...));
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof(Values)), ...);
  return bytes;
}

template <class Value>
Value take(std::string_view& bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), sizeof(Value));
  bytes.remove_prefix(sizeof(Value));
  return value;
}

// For a payload that is one value.
template <class Value>
Result<Value> take_only(std::string_view bytes, std::string_view what) {
  if (bytes.size() != sizeof(Value)) return corrupt_message(what);
  return take<Value>(bytes);
}

template <class Value>
std::string pack_span(std::span<const Value> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class Value>
Result<std::vector<Value>> take_all(std::string_view bytes, std::string_view what) {
  if (bytes.size() % sizeof(Value) != 0) return corrupt_message(what);
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class Value>
JsonArray json_array(const std::vector<Value>& values) {
  JsonArray array;
  array.reserve(values.size());
  for (const Value& value : values) array.emplace_back(value);
  return array;
}

template <class Value>
Result<std::vector<Value>> get_numbers(const Json& object, std::string_view key) {
  const Json* array = find(object, key);
  if (!array || !array->is_array()) return corrupt_message(key);
  std::vector<Value> values;
  values.reserve(array->get_array().size());
  for (const Json& element : array->get_array()) {
    const auto value = number_of<Value>(element);
    if (!value) return corrupt_message(key);
    values.push_back(*value);
  }
  return values;
}

// Ids and seeds use all 64 bits; JSON integers are signed here.
int64_t as_signed(uint64_t value);

Result<int64_t> need_int(const Json& object, std::string_view key);
Result<int> need_int32(const Json& object, std::string_view key);
Result<uint64_t> need_uint64(const Json& object, std::string_view key);
Result<double> need_double(const Json& object, std::string_view key);
Result<float> need_float(const Json& object, std::string_view key);
Result<std::string> need_string(const Json& object, std::string_view key);

// A reference into `object`, which must outlive it.
Result<std::span<const Json>> need_array(const Json& object, std::string_view key);

}  // namespace lockstep
