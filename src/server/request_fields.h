// RequestFields: typed, range-checked reading of a request's JSON object, which remembers the
// fields that nobody asked for. Errors name the field in "param". Used by the parsers of request
// bodies; pure.
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
#include "server/errors.h"

namespace lockstep {

// A body as a JSON object, or 400.
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

  // Fields that were never asked for; their names are kept to letters that fit into a header.
  std::vector<std::string> ignored() const;
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const JsonObject& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

// Names of fields in an error, as another API calls them: (from, to), the more special ones first.
using FieldNames = std::initializer_list<std::pair<std::string_view, std::string_view>>;
ApiError renamed_fields(ApiError error, FieldNames names);

}  // namespace lockstep
