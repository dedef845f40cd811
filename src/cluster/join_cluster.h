// The end of a join at the machine that wants to be in a cluster: finds clusters by their beacons,
// and asks a node of one for the cluster's key, with a PIN that the node shows or a token that was
// made there. Blocks the calling thread, with deadlines; not for the loop's thread. Used by the
// commands, before there is a cluster to be a node of.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/beacon.h"
#include "cluster/cluster_key.h"
#include "cluster/identity.h"
#include "cluster/join_token.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"

namespace lockstep {

// One node of a cluster that was heard. What it says of itself is not proved: the PIN does that.
struct ClusterSeen {
  ClusterId cluster;
  NodeId node;
  std::string name;
  NetAddress address;
};
// All that were heard within the time, a node once; ends early after the first if asked to.
Result<std::vector<ClusterSeen>> find_clusters(EventLoop& loop, const Identity& identity,
                                               const Beacon::Options& options,
                                               std::chrono::milliseconds time, bool first_only);

struct JoinRequest {
  struct Offer {
    std::string node_name;  // who shows the PIN
    std::string node_id;    // 8 digits
    std::string cluster;    // 8 digits
  };
  NetAddress address;
  std::string version;
  std::optional<JoinToken> token;
  // Without a token: asks the user for the PIN that the node shows; none: the user gave up. Called
  // on the calling thread. Spaces in what was typed do not count.
  std::function<std::optional<std::string>(const Offer&)> ask_pin;
  const std::atomic<bool>* cancelled = nullptr;
};
// The key of the cluster; Identity::join_cluster() keeps it. The error says what the user can do.
Result<ClusterKey> join_cluster(EventLoop& loop, const Identity& identity,
                                const JoinRequest& request);

}  // namespace lockstep
