// The parameters of a request's query, as a form encodes them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/request/errors.h"

namespace lockstep {

struct QueryParameter {
  std::string_view name;  // a view into the query
  std::string value;      // decoded, valid UTF-8
};

// In the order of the query. 400 names a value that is not percent-encoded UTF-8.
ApiResult<std::vector<QueryParameter>> parse_query(std::string_view query);

// The value of the last parameter of that name; nullopt if there is none.
std::optional<std::string> text_in(const std::vector<QueryParameter>& query, std::string_view name);
// 400 for anything but a number in this range.
ApiResult<std::optional<uint64_t>> number_in(const std::vector<QueryParameter>& query,
                                             std::string_view name, uint64_t least, uint64_t most);
// 400 for a parameter with any other name.
ApiResult<Ok> check_names(const std::vector<QueryParameter>& query,
                          std::initializer_list<std::string_view> known);

}  // namespace lockstep
