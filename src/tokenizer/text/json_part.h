// Helpers to read the parts of a tokenizer.json: each is an object with a "type", or null. Only for
// this folder.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"

namespace lockstep {

inline Error corrupt_part(std::string_view part, std::string_view what) {
  return {ErrorCode::kCorrupt, "the tokenizer's " + std::string(part) + " " + std::string(what)};
}

inline Error unsupported_part(std::string_view part, std::string_view what) {
  return {ErrorCode::kUnsupported,
          "the tokenizer's " + std::string(part) + " " + std::string(what) + " is not supported"};
}

inline bool is_missing(const Json* value) {
  return value == nullptr || value->is_null();
}

// kCorrupt unless `value` is an object with a type. The view is into `value`.
inline Result<std::string_view> type_of(std::string_view part, const Json& value) {
  const Json* type = find(value, "type");
  const auto* text = type == nullptr ? nullptr : type->if_string();
  if (text == nullptr) return corrupt_part(part, "has no type");
  return std::string_view(text->data(), text->size());
}

inline Result<std::string> required_string(std::string_view part, const Json& object,
                                           std::string_view key) {
  const auto text = get_string(object, key);
  if (text.ok() && text.value()) return *text.value();
  return corrupt_part(part, "has no string \"" + std::string(key) + "\"");
}

// An optional flag.
inline Result<bool> flag_or(std::string_view part, const Json& object, std::string_view key,
                            bool missing) {
  const auto flag = get_bool(object, key);
  if (!flag.ok()) return corrupt_part(part, "is wrong: " + flag.error().message);
  return flag.value().value_or(missing);
}

}  // namespace lockstep
