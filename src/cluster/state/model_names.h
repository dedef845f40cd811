// Which model a client's name means: a name, an alias, or neither, and then the names similar to
// it. Used by the API's front end on every node. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/state/desired_state.h"

namespace lockstep {

inline constexpr size_t kSuggestionsMax = 3;

struct ModelName {
  const DesiredEntry* entry = nullptr;   // in the state passed in; null: no match
  std::vector<std::string> suggestions;  // nearest first, if there is no match
};

// A model's own name takes precedence over aliases; if two models share an alias, the one written
// later gets it.
ModelName find_model(const DesiredState& desired, std::string_view name);

// Names of `known` similar to `asked`: at most kSuggestionsMax, nearest first, each once.
std::vector<std::string> names_like(std::string_view asked, const std::vector<std::string>& known);

// "there is no model 'qwen3-8'; did you mean qwen3-8b?"
std::string no_such_model(std::string_view name, const ModelName& found);

// The number of characters to insert, remove, replace or swap with their neighbour (optimal string
// alignment); ASCII case is ignored. Bytes of names beyond 256 are ignored.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace lockstep
