// ClusterControl: what the API and the commands ask of this node's cluster. node/cluster_driver.h
// implements it; tests of the server use a fake. Any thread but the cluster's own loop; calls that
// change something return once this node's disk has it, or with an error within seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/desired_state.h"
#include "cluster/messages.h"
#include "cluster/part.h"

namespace lockstep {

struct ClusterNodeReport {
  NodeId id;
  std::string name;     // empty: never told
  std::string version;  // of the program; empty: never told
  std::string address;  // of its control port, as this node reaches it; empty: this node
  std::string state;    // "alive", "suspect", "dead", "foreign", or "absent": known, never heard
  std::string note;     // what is wrong with it and what to do; empty: nothing
  bool is_self = false;
  bool is_coordinator = false;
  bool is_spare = false;
  int64_t budget_bytes = 0;    // memory that models may use
  int64_t promised_bytes = 0;  // of it, to models
  int64_t read_bytes_s = 0;    // memory bandwidth
  std::string data_host;       // its address for links between ranks; empty: that of control
  std::string life;            // another one after each start; empty: never told
  // Its wall clock less this node's, as its last heartbeat came in; 0 for this node.
  std::optional<double> clock_ahead_s;
  std::optional<double> power_w;  // of processors and memory of late
};

// A group of a model that is placed somewhere.
struct ClusterGroupReport {
  ModelPhase phase = ModelPhase::kWaiting;
  PlacementEpoch epoch;
  RankPlan plan;
};

struct ClusterModelReport {
  DesiredEntry entry;
  ModelPhase phase = ModelPhase::kWaiting;  // ready: one group is, at least
  std::string sentence;                     // why it waits, or a group does; empty: nothing does
  std::vector<ClusterGroupReport> groups;   // as far as they are known here, oldest first
  // Until it is unloaded if nobody uses it, as far as this node knows; nullopt: it stays.
  std::optional<int64_t> idle_left_ms;
};

struct ClusterReport {
  std::string cluster;  // its public id, 8 digits
  std::vector<ClusterNodeReport> nodes;
  std::vector<ClusterModelReport> models;  // that are wanted
  // Machines that ask to join, to be shown on this node's screen and never to others.
  struct Pin {
    std::string name;
    std::string address;
    std::string pin;
  };
  std::vector<Pin> pins;
  uint64_t strangers_refused = 0;
  std::string beacon_problem;  // empty: none
};

class ClusterControl {
 public:
  virtual ~ClusterControl() = default;
  virtual ClusterReport report() const = 0;
  virtual Status load(DesiredEntry entry) = 0;  // its stamp is set here
  virtual Status unload(std::string_view name) = 0;
  // A node drains, ends and begins anew; Ok once it has been told. kPeerLost if it does not answer.
  virtual Status restart(const NodeId& node) = 0;
  // With which another machine joins without a PIN (cluster/join_token.h).
  virtual Result<std::string> make_join_token() = 0;
};

}  // namespace lockstep
