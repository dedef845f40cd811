#include "server/request/request_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

constexpr size_t kIgnoredNameBytesMax = 64;
std::optional<double> as_number(const Json& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return std::nullopt;
}

// Clients in JavaScript and Python sometimes write 16.0.
std::optional<int64_t> as_integer(const Json& value) {
  if (value.is_int64()) return value.get_int64();
  const std::optional<double> number = as_number(value);
  if (!number || value.is_uint64() || std::trunc(*number) != *number) return std::nullopt;
  if (std::fabs(*number) > 9007199254740992.0) return std::nullopt;  // 2^53
  return static_cast<int64_t>(*number);
}

bool is_header_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace

ApiResult<Json> parse_body(std::string_view body) {
  if (body.empty()) return ApiError{400, "the request body is empty; it must be a JSON object"};
  auto parsed = parse_untrusted_json(body);
  if (!parsed.ok()) {
    TRY(check_work());
    if (parsed.error().code == ErrorCode::kExhausted) {
      return ApiError{413,
                      "the request body is too large to read: " + parsed.error().message +
                          "; send less at a time",
                      "", "too_many_values"};
    }
    return ApiError{400, "the request body is not valid JSON: " + parsed.error().message, "",
                    "invalid_json"};
  }
  if (!parsed.value().is_object()) {
    return ApiError{400, "the request body must be a JSON object", "", "invalid_json"};
  }
  return std::move(parsed.value());
}

RequestFields::RequestFields(const JsonObject& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const Json* RequestFields::get(std::string_view key) {
  asked_.emplace(key);
  const Json* value = object_.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

ApiResult<std::optional<int64_t>> RequestFields::integer(std::string_view key, int64_t least,
                                                         int64_t most) {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> number = as_integer(*value);
  if (!number) return bad_field(name(key), fmt::format("\"{}\" must be an integer", name(key)));
  if (*number < least || *number > most) {
    return bad_field(name(key), most == std::numeric_limits<int64_t>::max()
                                    ? fmt::format("\"{}\" must be at least {}", name(key), least)
                                    : fmt::format("\"{}\" must be from {} to {}, not {}", name(key),
                                                  least, most, *number));
  }
  return number;
}

ApiResult<std::optional<double>> RequestFields::number(std::string_view key, double least,
                                                       double most) {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<double>();
  const std::optional<double> number = as_number(*value);
  if (!number) return bad_field(name(key), fmt::format("\"{}\" must be a number", name(key)));
  if (!(*number >= least && *number <= most)) {
    return bad_field(name(key), fmt::format("\"{}\" must be from {} to {}, not {}", name(key),
                                            least, most, *number));
  }
  return number;
}

ApiResult<std::optional<bool>> RequestFields::boolean(std::string_view key) {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) {
    return bad_field(name(key), fmt::format("\"{}\" must be true or false", name(key)));
  }
  return std::optional<bool>(value->get_bool());
}

ApiResult<std::optional<std::string>> RequestFields::text(std::string_view key) {
  const Json* value = get(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) {
    return bad_field(name(key), fmt::format("\"{}\" must be a string", name(key)));
  }
  return std::optional<std::string>(std::string(value->get_string()));
}

ApiResult<const JsonObject*> RequestFields::object(std::string_view key) {
  const Json* value = get(key);
  if (value == nullptr) return static_cast<const JsonObject*>(nullptr);
  if (!value->is_object()) {
    return bad_field(name(key), fmt::format("\"{}\" must be an object", name(key)));
  }
  return &value->get_object();
}

ApiResult<Ok> RequestFields::refuse(std::string_view key, const std::vector<Json>& neutral) {
  const Json* value = get(key);
  if (value == nullptr) return Ok{};
  const auto is_same = [&](const Json& other) {
    const auto a = as_number(*value);
    const auto b = as_number(other);
    return a && b ? *a == *b : *value == other;
  };
  if (std::any_of(neutral.begin(), neutral.end(), is_same)) return Ok{};
  return unsupported_field(name(key), fmt::format("\"{}\" is not supported yet", name(key)));
}

std::vector<std::string> RequestFields::ignored() const {
  std::vector<std::string> names;
  for (const auto& field : object_) {
    const std::string_view key(field.key().data(), field.key().size());
    if (asked_.find(key) != asked_.end()) continue;
    if (key.empty() || key.size() > kIgnoredNameBytesMax) continue;
    if (!std::all_of(key.begin(), key.end(), is_header_letter)) continue;
    if (names.size() == kIgnoredFieldsMax) break;
    names.push_back(name(key));
  }
  return names;
}

ApiResult<Ok> RequestFields::refuse_ignored() const {
  const std::vector<std::string> unknown = ignored();
  if (unknown.empty()) return Ok{};
  return bad_field(unknown.front(), fmt::format("unknown field \"{}\"", unknown.front()));
}

ApiError renamed_fields(ApiError error, FieldNames names) {
  for (const auto& [from, to] : names) {
    const auto is_whole = [](std::string_view text, size_t end) {
      return end == text.size() || text[end] == '.' || text[end] == '[' || text[end] == '"';
    };
    if (std::string_view(error.param).starts_with(from) && is_whole(error.param, from.size())) {
      error.param.replace(0, from.size(), to);
    }
    const std::string quoted = '"' + std::string(from);
    for (size_t at = 0; (at = error.message.find(quoted, at)) != std::string::npos;) {
      if (is_whole(error.message, at + quoted.size())) {
        error.message.replace(at + 1, from.size(), to);
      }
      at += quoted.size();
    }
  }
  return error;
}

}  // namespace lockstep
