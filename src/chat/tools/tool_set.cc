#include "chat/tools/tool_set.h"

#include "chat/text/pending_text.h"
#include "chat/tools/schema_types.h"

namespace lockstep {
namespace {

// Python's words, which models sometimes write.
struct PythonWord {
  std::string_view word;
  std::string_view json;
  JsonTypes type;
};
constexpr PythonWord kPythonWords[] = {
    {"True", "true", kJsonBool}, {"False", "false", kJsonBool}, {"None", "null", kJsonNull}};

}  // namespace

ToolSet::ToolSet(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools.get_array()) {
    const Json* function = find(tool, "function");
    const Json* name = find(function ? *function : tool, "name");
    if (!name || !name->is_string()) continue;
    Parameters& parameters = tools_[std::string(name->get_string())];
    const Json* schema = find(function ? *function : tool, "parameters");
    const Json* properties = schema ? find(*schema, "properties") : nullptr;
    if (!properties || !properties->is_object()) continue;
    SchemaTypes types(*schema);
    for (const auto& property : properties->get_object()) {
      parameters[std::string(property.key())] = types.of(property.value());
    }
  }
}

std::vector<std::string> ToolSet::names() const {
  std::vector<std::string> names;
  for (const auto& tool : tools_) names.push_back(tool.first);
  return names;
}

bool ToolSet::has_parameter(std::string_view tool, std::string_view parameter) const {
  const auto known = tools_.find(tool);
  return known != tools_.end() && known->second.find(parameter) != known->second.end();
}

std::string_view ToolSet::name_before(std::string_view text) const {
  std::string_view longest;
  for (const auto& tool : tools_) {
    const std::string_view name = tool.first;
    const bool begins = name.size() < text.size() && text.substr(0, name.size()) == name;
    if (begins && name.size() > longest.size()) longest = name;
  }
  return longest;
}

JsonTypes ToolSet::types_of(std::string_view tool, std::string_view parameter) const {
  const auto known = tools_.find(tool);
  if (known == tools_.end()) return kJsonAny;
  const auto type = known->second.find(parameter);
  return type == known->second.end() ? kJsonAny : type->second;
}

std::string value_as_json(std::string_view text, JsonTypes types) {
  const std::string_view trimmed = without_blanks(text);
  const auto parsed = types == kJsonString ? Result<Json>(Json()) : parse_untrusted_json(trimmed);
  if (types != kJsonString && parsed.ok()) {
    const JsonTypes type = json_type_of(parsed.value());
    const bool is_quoted_text = type == kJsonString && (types & kJsonString) != 0;
    if ((type & types) != 0 && !is_quoted_text) return std::string(trimmed);
    if ((types & kJsonString) == 0) return std::string(trimmed);  // wrong, but as written
  }
  for (const PythonWord& word : kPythonWords) {
    if (types != kJsonAny && (types & word.type) != 0 && trimmed == word.word) {
      return std::string(word.json);
    }
  }
  return json_string(text);
}

}  // namespace lockstep
