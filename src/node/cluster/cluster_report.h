// The status of the cluster as this node sees it, from its Brain and its Peers. Used by
// ClusterDriver on the loop's thread. Pure.
#pragma once

#include "cluster/brain/brain.h"
#include "cluster/identity.h"
#include "cluster/peers/peers.h"
#include "node/cluster/cluster_control.h"

namespace lockstep {

ClusterReport make_cluster_report(const Brain& brain, const BrainOptions& own,
                                  const Identity& identity, const Peers::Report& peers,
                                  int64_t now_ms);

}  // namespace lockstep
