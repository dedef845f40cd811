// The parts of a constraint (grammar/constraint.h) as JSON. Used by code that builds one; pure.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/tools/tool_format.h"
#include "json/json.h"

namespace lockstep {

inline Json text_part(std::string_view text) {
  return JsonObject{{"text", text}};
}
inline Json marker_part(std::string_view text) {
  return JsonObject{{"marker", text}};
}
inline Json regex_part(std::string_view pattern) {
  return JsonObject{{"regex", pattern}};
}
inline Json rule_part(std::string_view name) {
  return JsonObject{{"rule", name}};
}
inline Json sequence_part(JsonArray parts) {
  return JsonObject{{"sequence", std::move(parts)}};
}
inline Json choice_part(JsonArray parts) {
  return JsonObject{{"choice", std::move(parts)}};
}
inline Json many_part(Json body, int min) {
  return JsonObject{{"repeat", std::move(body)}, {"min", min}};
}
inline Json optional_part(Json body) {
  return JsonObject{{"repeat", std::move(body)}, {"min", 0}, {"max", 1}};
}
// Any text that contains none of the markers and no match of the regex; "" for no regex.
inline Json free_part(const ToolFormat::Markers& without, const std::string& unlike = "") {
  JsonArray markers;
  for (const std::string_view marker : without) markers.emplace_back(marker);
  JsonObject free{{"without", std::move(markers)}};
  if (!unlike.empty()) free["unlike"] = unlike;
  return JsonObject{{"free", std::move(free)}};
}

}  // namespace lockstep
