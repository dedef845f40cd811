// Which model a client's name means: a name, an alias, or none, and then the names that look like
// it. Used by the API's front end on every node. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/desired_state.h"

namespace lockstep {

inline constexpr size_t kSuggestionsMax = 3;

struct ModelName {
  const DesiredEntry* entry = nullptr;   // of the state that was asked; null: no model is meant
  std::vector<std::string> suggestions;  // the nearest first, where none is meant
};

// A model's own name goes before aliases; of two models with one alias, the one written later has
// it.
ModelName find_model(const DesiredState& desired, std::string_view name);

// Of `known`, those that look like `asked`: at most kSuggestionsMax, the nearest first, each once.
std::vector<std::string> names_like(std::string_view asked, const std::vector<std::string>& known);

// "there is no model 'qwen3-8'; did you mean qwen3-8b?"
std::string no_such_model(std::string_view name, const ModelName& found);

// How many characters must be inserted, removed, replaced or swapped with their neighbour (optimal
// string alignment); upper and lower case of ASCII count as the same. Bytes of names beyond 256 are
// not looked at.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace lockstep
