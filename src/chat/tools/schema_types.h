// SchemaTypes: the JSON types of the values that a schema allows, derived from types, unions,
// references and lists of values. Visits each part of a schema a few times at most, even with
// cyclic references. Used by tool_set.h; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "json/json.h"
#include "json/json_types.h"

namespace lockstep {

class SchemaTypes {
 public:
  // Depth to which references and unions are followed; anything deeper may have any type.
  static constexpr int kDepthMax = 8;

  // References are resolved in `root`, which outlives this.
  explicit SchemaTypes(const Json& root) : root_(root) {}

  // `schema` is a part of the root. kJsonAny if nothing is known or nothing satisfies it.
  JsonTypes of(const Json& schema) { return types(schema, 0); }

  size_t steps() const { return steps_; }  // schemas and listed values visited

 private:
  struct Known {
    JsonTypes types = 0;
    bool is_known = false;
  };

  JsonTypes types(const Json& schema, int depth);
  JsonTypes of_union(const Json& schemas, int depth);
  JsonTypes of_values(const Json& values);
  JsonTypes of_reference(std::string_view reference, int depth);
  const Json* target(std::string_view reference) const;

  const Json& root_;
  size_t steps_ = 0;
  // Types of reference targets, by depth: a result depends only on these two.
  std::unordered_map<const Json*, std::array<Known, kDepthMax + 2>> known_;
};

// The type of one value.
JsonTypes json_type_of(const Json& value);

}  // namespace lockstep
