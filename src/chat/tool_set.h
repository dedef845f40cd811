// ToolSet: the functions that a request offers to the model, as far as its output is read by them:
// their names, and which JSON types each parameter may have. Immutable, any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "json/json.h"
#include "json/json_types.h"

namespace lockstep {

class ToolSet {
 public:
  ToolSet() = default;
  // `tools` in OpenAI's form; what has no name is left out.
  explicit ToolSet(const Json& tools);

  bool empty() const { return tools_.empty(); }
  bool has(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  // kJsonAny where the tool, the parameter or its type is not known.
  JsonTypes types_of(std::string_view tool, std::string_view parameter) const;

 private:
  using Parameters = std::map<std::string, JsonTypes, std::less<>>;
  std::map<std::string, Parameters, std::less<>> tools_;
};

// The JSON text that a value stands for which a model wrote without quotes: what is JSON of one of
// `types` stays as it is written, anything else becomes a string.
std::string value_as_json(std::string_view text, JsonTypes types);

}  // namespace lockstep
