// The models of a node's status: which of them a user means, and how far they are. Pure functions
// of its JSON. Used by `lockstep run`, `load` and `top`.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"

namespace lockstep {

// The model that a user means: by what it was loaded from (`path`, empty if the text is none), its
// name, an alias, or the last part of its name, in any case. Null: the status has none.
const Json* find_served_model(const Json& status, std::string_view text, std::string_view path);
// Null: no model of this exact name.
const Json* model_named(const Json& status, std::string_view name);

// It answers now.
bool is_model_ready(const Json& model);
// It answers now, or is loaded by its next request.
bool is_model_on_demand(const Json& model);

// progress_text() of its weights while they are read, with the node's rate; else "".
std::string loading_text(const Json& model);
// The same; while none are read, its phase and why it waits. Harmless, one line.
std::string model_progress(const Json& model);

}  // namespace lockstep
