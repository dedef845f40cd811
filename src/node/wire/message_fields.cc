#include "node/wire/message_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

namespace lockstep {

Error corrupt_message(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("a control message has an invalid {}", what)};
}

int64_t as_signed(uint64_t value) {
  return static_cast<int64_t>(value);
}

Result<int64_t> need_int(const Json& object, std::string_view key) {
  const std::optional<int64_t> value = TRY(get_int(object, key));
  if (!value) return corrupt_message(key);
  return *value;
}

Result<int> need_int32(const Json& object, std::string_view key) {
  const int64_t value = TRY(need_int(object, key));
  if (value < INT32_MIN || value > INT32_MAX) return corrupt_message(key);
  return static_cast<int>(value);
}

Result<uint64_t> need_uint64(const Json& object, std::string_view key) {
  return static_cast<uint64_t>(TRY(need_int(object, key)));
}

Result<double> need_double(const Json& object, std::string_view key) {
  const std::optional<double> value = TRY(get_double(object, key));
  if (!value) return corrupt_message(key);
  return *value;
}

Result<float> need_float(const Json& object, std::string_view key) {
  const double value = TRY(need_double(object, key));
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return corrupt_message(key);
  return static_cast<float>(value);
}

Result<std::string> need_string(const Json& object, std::string_view key) {
  std::optional<std::string> value = TRY(get_string(object, key));
  if (!value) return corrupt_message(key);
  return std::move(*value);
}

Result<std::span<const Json>> need_array(const Json& object, std::string_view key) {
  const Json* array = find(object, key);
  if (!array || !array->is_array()) return corrupt_message(key);
  const JsonArray& elements = array->get_array();
  return std::span<const Json>(elements.data(), elements.size());
}

}  // namespace lockstep
