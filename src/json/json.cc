#include "json/json.h"

#include <limits>
#include <utility>

namespace lockstep {
namespace {

Error wrong_type(std::string_view key, const char* type) {
  return {ErrorCode::kInvalidArgument, "\"" + std::string(key) + "\" must be " + type};
}

// A missing key and a null value are equivalent.
const Json* find_set(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

const Json* find(const Json& value, std::string_view key) {
  const JsonObject* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
}

Result<std::optional<int64_t>> get_int(const Json& object, std::string_view key) {
  const Json* value = find_set(object, key);
  if (value == nullptr) return std::optional<int64_t>();
  // The parser produces an unsigned integer only if it does not fit in a signed one.
  if (const int64_t* number = value->if_int64()) return std::optional<int64_t>(*number);
  if (const uint64_t* number = value->if_uint64()) {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (*number <= kMax) return std::optional<int64_t>(static_cast<int64_t>(*number));
    return Error{ErrorCode::kInvalidArgument, "\"" + std::string(key) + "\" is too large"};
  }
  return wrong_type(key, "an integer");
}

Result<std::optional<double>> get_double(const Json& object, std::string_view key) {
  const Json* value = find_set(object, key);
  if (value == nullptr) return std::optional<double>();
  if (const double* number = value->if_double()) return std::optional<double>(*number);
  if (const int64_t* number = value->if_int64()) {
    return std::optional<double>(static_cast<double>(*number));
  }
  if (const uint64_t* number = value->if_uint64()) {
    return std::optional<double>(static_cast<double>(*number));
  }
  return wrong_type(key, "a number");
}

Result<std::optional<bool>> get_bool(const Json& object, std::string_view key) {
  const Json* value = find_set(object, key);
  if (value == nullptr) return std::optional<bool>();
  if (const bool* flag = value->if_bool()) return std::optional<bool>(*flag);
  return wrong_type(key, "true or false");
}

Result<std::optional<std::string>> get_string(const Json& object, std::string_view key) {
  const Json* value = find_set(object, key);
  if (value == nullptr) return std::optional<std::string>();
  if (const auto* text = value->if_string()) {
    return std::optional<std::string>(std::in_place, text->data(), text->size());
  }
  return wrong_type(key, "a string");
}

}  // namespace lockstep
