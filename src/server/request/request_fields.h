// RequestFields: typed, range-checked reading of a request's JSON object that records which fields
// were never read. Errors name the field in "param". Used by the parsers of request bodies; pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"
#include "server/request/errors.h"

namespace lockstep {

// Ignored fields per object, and ignored kinds of tools, that are reported to the client.
inline constexpr size_t kIgnoredFieldsMax = 16;

// A body as a JSON object; 400, or 413 beyond the limits of
// parse_untrusted_json().
ApiResult<Json> parse_body(std::string_view body);

class RequestFields {
 public:
  // `prefix` names a nested object in errors: "stream_options.". `object` must outlive this.
  explicit RequestFields(const JsonObject& object, std::string prefix = "");

  // Null if the field is missing or null.
  const Json* get(std::string_view key);
  ApiResult<std::optional<int64_t>> integer(std::string_view key, int64_t least, int64_t most);
  ApiResult<std::optional<double>> number(std::string_view key, double least, double most);
  ApiResult<std::optional<bool>> boolean(std::string_view key);
  ApiResult<std::optional<std::string>> text(std::string_view key);
  ApiResult<const JsonObject*> object(std::string_view key);

  // 400 "... is not supported yet" unless the field is missing, null or one of `neutral`.
  ApiResult<Ok> refuse(std::string_view key, const std::vector<Json>& neutral = {});

  // Fields that were never read, with names limited to characters that a header may have.
  std::vector<std::string> ignored() const;
  // 400 that names one of them.
  ApiResult<Ok> refuse_ignored() const;
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const JsonObject& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

// Renames fields in an error to those of another API: (from, to), the more specific ones first.
using FieldNames = std::initializer_list<std::pair<std::string_view, std::string_view>>;
ApiError renamed_fields(ApiError error, FieldNames names);

}  // namespace lockstep
