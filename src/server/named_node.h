// A node as a request names it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "node/cluster_control.h"
#include "server/errors.h"

namespace lockstep {

// By name, by id, or by the first digits of one, as `report` has them; 400 names `field`.
ApiResult<NodeId> node_named(const ClusterReport& report, const std::string& name,
                             std::string_view field);

}  // namespace lockstep
