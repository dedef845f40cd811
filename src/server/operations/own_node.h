// The node of a machine that serves alone, in the form in which a cluster reports its nodes.
#pragma once

#include "node/cluster/cluster_control.h"

namespace lockstep {

class ApiContext;

// The name of the machine, the memory for its models, its meters. It has no identity in a cluster:
// its id is NodeId{}.
ClusterNodeReport own_node(const ApiContext& context);

}  // namespace lockstep
