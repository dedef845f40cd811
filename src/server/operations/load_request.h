// The body of POST /cluster/load as an entry of the desired state. Pure.
#pragma once

#include <string_view>

#include "node/cluster/cluster_control.h"
#include "server/request/errors.h"

namespace lockstep {

// Nodes are given by a name, an id, or the first digits of an id in `report`. A 400 error names the
// field. The entry has no stamp yet.
ApiResult<DesiredEntry> parse_load_request(std::string_view body, const ClusterReport& report);

}  // namespace lockstep
