// ToolSet: the names of the functions that a request offers and the JSON types of their parameters,
// for parsing a model's output. Immutable, any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "json/json_types.h"

namespace lockstep {

class ToolSet {
 public:
  ToolSet() = default;
  // `tools` in OpenAI's form; tools without a name are skipped.
  explicit ToolSet(const Json& tools);

  bool empty() const { return tools_.empty(); }
  std::vector<std::string> names() const;
  bool has(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  bool has_parameter(std::string_view tool, std::string_view parameter) const;
  // The longest name of a tool that `text` begins with and that is not all of it; or empty.
  std::string_view name_before(std::string_view text) const;
  // kJsonAny if the tool, the parameter or its type is unknown.
  JsonTypes types_of(std::string_view tool, std::string_view parameter) const;

 private:
  using Parameters = std::map<std::string, JsonTypes, std::less<>>;
  std::map<std::string, Parameters, std::less<>> tools_;
};

// The JSON text of a value that a model wrote without quotes: JSON of one of `types` stays as
// written, anything else becomes a string.
std::string value_as_json(std::string_view text, JsonTypes types);

}  // namespace lockstep
