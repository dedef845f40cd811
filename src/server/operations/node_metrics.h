// GET /metrics: this node in the text format of Prometheus (version 0.0.4): its requests by model,
// its models, its cluster and its power. It calls the cluster, so it runs on a thread that may
// block.
#pragma once

#include <map>
#include <string>

#include "net/http/http_server.h"
#include "node/cluster/cluster_control.h"
#include "node/models/model_service.h"
#include "server/request/request_metrics.h"
#include "server/streams/kept_streams.h"

namespace lockstep {

class ApiContext;

struct NodeFigures {
  std::string version;
  std::optional<double> power_w;
  std::map<std::string, ModelRequests> requests;
  std::vector<ModelStatus> models;
  size_t waiting_to_be_read = 0;  // requests
  double oldest_read_s = 0;       // how long the oldest read in progress has taken
  size_t event_streams = 0;       // of GET /cluster/events
  StreamFigures streams;
  std::optional<ClusterReport> cluster;  // nullopt: no cluster
};

std::string node_metrics(const NodeFigures& figures);

HttpResponse serve_metrics(const ApiContext& context);

}  // namespace lockstep
