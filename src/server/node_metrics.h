// GET /metrics: this node in the text format of Prometheus (version 0.0.4): its requests by model,
// its models, its cluster and its power. It asks the cluster, so it runs on a thread that may wait.
#pragma once

#include <map>
#include <string>

#include "net/http_server.h"
#include "node/cluster_control.h"
#include "node/model_service.h"
#include "server/request_metrics.h"

namespace lockstep {

class ApiContext;

struct NodeFigures {
  std::string version;
  std::optional<double> power_w;
  std::map<std::string, ModelRequests> requests;
  std::vector<ModelStatus> models;
  std::optional<ClusterReport> cluster;  // nullopt: this node serves alone
};

std::string node_metrics(const NodeFigures& figures);

HttpResponse serve_metrics(const ApiContext& context);

}  // namespace lockstep
