// Finds the node that a request names. Pure.
#pragma once

#include <string>
#include <string_view>

#include "node/cluster/cluster_control.h"
#include "server/request/errors.h"

namespace lockstep {

// By a name, an id, or the first digits of an id in `report`; a 400 error names `field`.
ApiResult<NodeId> node_named(const ClusterReport& report, const std::string& name,
                             std::string_view field);

}  // namespace lockstep
