// What /cluster/status says of a model and of the cluster: values of node/ as JSON, fields under
// their own names. Pure functions.
#pragma once

#include "json/json.h"
#include "node/cluster_control.h"
#include "node/model_service.h"

namespace lockstep {

JsonObject status_json(const ModelStatus& status);
JsonObject node_json(const ClusterNodeReport& node);
// Adds to a model's object what the cluster knows of it: what was asked for, "phase", "sentence",
// "groups" with what `status` says of them, and "placement", rank by rank with the names of
// `report`'s nodes.
void add_placement(JsonObject& model, const ClusterModelReport& placed, const ClusterReport& report,
                   const ModelStatus& status);

}  // namespace lockstep
