// The JSON form of the types of cluster/part.h: used in messages between nodes and in the purposes
// of their streams. Pure functions; invalid input is kCorrupt.
#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/part.h"
#include "json/json.h"

namespace lockstep {

Json epoch_json(const PlacementEpoch& epoch);
Result<PlacementEpoch> epoch_field(const Json& object, std::string_view key = "epoch");

}  // namespace lockstep
