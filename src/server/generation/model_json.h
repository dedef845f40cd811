// The models and nodes of /cluster/status: values of node/ as JSON, with fields under their own
// names. Pure functions.
#pragma once

#include "json/json.h"
#include "node/cluster/cluster_control.h"
#include "node/models/model_service.h"

namespace lockstep {

JsonObject status_json(const ModelStatus& status);
JsonObject node_json(const ClusterNodeReport& node);
// Adds what the cluster knows of a model: the requested entry, "phase", "sentence", "groups" with
// their part of `status`, and "placement", rank by rank with the node names in `report`.
void add_placement(JsonObject& model, const ClusterModelReport& placed, const ClusterReport& report,
                   const ModelStatus& status);

}  // namespace lockstep
