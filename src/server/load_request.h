// The body of POST /cluster/load as an entry of the desired state. Pure.
#pragma once

#include <string_view>

#include "node/cluster_control.h"
#include "server/errors.h"

namespace lockstep {

// Nodes are named as `report` has them: by name, by id, or by the first digits of one. 400 names
// the field. The entry has no stamp yet.
ApiResult<DesiredEntry> parse_load_request(std::string_view body, const ClusterReport& report);

}  // namespace lockstep
