// The requirements of a list of schemas on the keys of one object and the items of one array.
// Internal to the JSON-schema front end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/schema/schema_shape.h"

namespace lockstep {

struct KeySchema {
  std::string name;
  SchemaList value;
  bool is_required = false;
};

// Keys that no schema names: the words of `names`, each with a value that satisfies `value`.
struct OtherKeys {
  Dfa names;
  SchemaList value;
};

struct ObjectFacts {
  std::vector<KeySchema> keys;  // in the order of the schemas
  std::vector<OtherKeys> others;
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
};

struct ArrayFacts {
  std::vector<SchemaList> first;  // of the items in prefixItems
  SchemaList rest;
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
};

Result<ObjectFacts> object_facts(SchemaShapes& shapes, const ObjectShape& shape);
// Only named and required keys, without `others`; cheap.
Result<std::vector<KeySchema>> named_keys(SchemaShapes& shapes, const ObjectShape& shape);
// The schemas for the value of the key `name`, whether they name it or not.
Result<SchemaList> value_of_key(SchemaShapes& shapes, const ObjectShape& shape,
                                std::string_view name);
// Whether unnamed keys are forbidden.
bool is_closed(const ObjectShape& shape);
Result<ArrayFacts> array_facts(SchemaShapes& shapes, const ArrayShape& shape);

// A count such as minItems: a whole number, also 2.0.
Result<uint32_t> schema_count(const Json& schema, std::string_view keyword, uint32_t otherwise);

}  // namespace lockstep
