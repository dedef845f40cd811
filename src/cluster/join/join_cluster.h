// The joining machine's end of a join: finds clusters by their beacons, and asks a node of one for
// the cluster's key, with a PIN that the node shows or a token made there. Blocks the calling
// thread, with deadlines; not for the loop's thread. Used by commands, before the machine is a node
// of a cluster.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/cluster_key.h"
#include "cluster/discovery/beacon.h"
#include "cluster/identity.h"
#include "cluster/join/join_token.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

// A node of a cluster that was heard. Its claims are not proved: the PIN does that.
struct ClusterSeen {
  ClusterId cluster;
  NodeId node;
  std::string name;
  NetAddress address;
};
// All nodes heard within the time, each once; returns early after the first if `first_only`.
Result<std::vector<ClusterSeen>> find_clusters(EventLoop& loop, const Identity& identity,
                                               const Beacon::Options& options,
                                               std::chrono::milliseconds time, bool first_only);

struct JoinRequest {
  struct Offer {
    std::string node_name;  // shows the PIN
    std::string node_id;    // 8 digits
    std::string cluster;    // 8 digits
  };
  NetAddress address;
  std::string version;
  std::optional<JoinToken> token;
  // Without a token: asks the user for the PIN that the node shows; nullopt: the user gave up.
  // Called on the calling thread. Spaces in the input are ignored.
  std::function<std::optional<std::string>(const Offer&)> ask_pin;
  const std::atomic<bool>* cancelled = nullptr;
};
// The cluster's key; Identity::join_cluster() stores it. The error says what the user can do.
Result<ClusterKey> join_cluster(EventLoop& loop, const Identity& identity,
                                const JoinRequest& request);

}  // namespace lockstep
