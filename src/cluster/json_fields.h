// Fields of messages and files between nodes: each must exist, have its type and be within its
// limit, or the error names it. Used by the JSON forms of cluster/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/node_id.h"
#include "json/json.h"

namespace lockstep {

inline constexpr int64_t kNumberMax = INT64_MAX;

// kCorrupt: "\"key\" ..." for all of them.
Result<int64_t> number_field(const Json& object, std::string_view key, int64_t most = kNumberMax);
Result<bool> bool_field(const Json& object, std::string_view key);
Result<std::string> text_field(const Json& object, std::string_view key, size_t bytes_max);
Result<NodeId> node_field(const Json& object, std::string_view key);
// The array's items, at most `count_max`.
Result<const JsonArray*> list_field(const Json& object, std::string_view key, size_t count_max);

Result<NodeId> node_of(const Json& value);

}  // namespace lockstep
