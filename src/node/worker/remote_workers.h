// The ranks of a placement as the node that leads its group sees them: its own are child processes,
// the others are started by their nodes (node/worker/worker_host.h) and reached over a stream of
// kind "worker". A silent or disconnected node is a lost process: nothing here waits for a dead
// machine beyond a deadline.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cluster/node_id.h"
#include "cluster/part.h"
#include "cluster/peers/peers.h"
#include "net/event_loop.h"
#include "node/worker/worker_places.h"

namespace lockstep {

// Where one rank runs.
struct RankPlace {
  NodeId node;
  std::string name{};  // the node's, for people; not needed for own ranks
};

struct ClusterPlacesOptions {
  NodeId own;
  std::string model;  // its name in the cluster
  PlacementEpoch epoch;
  std::vector<RankPlace> ranks{};
  LocalPaths files{};    // for own ranks
  MachineHosts hosts{};  // of this node
  WorkerCommand command{};
  std::chrono::milliseconds answer_max{3'000};  // for another node to start a rank
};

// Loop and peers must outlive the places and all their processes, which any thread may destroy.
std::unique_ptr<WorkerPlaces> cluster_worker_places(EventLoop& loop, Peers& peers,
                                                    ClusterPlacesOptions options);

}  // namespace lockstep
