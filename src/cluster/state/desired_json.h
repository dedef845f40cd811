// Entries of the desired state as JSON: on disk and between nodes. Entries read have passed
// check_entry(). Pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "cluster/state/desired_state.h"
#include "json/json.h"

namespace lockstep {

Json stamp_json(const Stamp& stamp);
Result<Stamp> stamp_of(const Json& value);

Json entry_json(const DesiredEntry& entry);
Result<DesiredEntry> entry_of(const Json& value);
// Compact; the same for equal entries.
std::string entry_text(const DesiredEntry& entry);

Json desired_json(const DesiredState& state);
Result<DesiredState> desired_of(const Json& value);

}  // namespace lockstep
