// ClusterControl: how the API and the commands query and change this node's cluster.
// node/cluster/cluster_driver.h implements it; tests of the server use a fake. Any thread but the
// cluster's loop; changes return once they are on this node's disk, or with an error within
// seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/meters/machine_meters.h"
#include "base/result.h"
#include "cluster/brain/messages.h"
#include "cluster/part.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

struct ClusterNodeReport {
  NodeId id;
  std::string name;     // empty: unknown
  std::string version;  // of the program; empty: unknown
  std::string address;  // of its control port, as this node reaches it; empty: this node
  std::string state;    // "alive", "suspect", "dead", "foreign", or "absent": known, never heard
  std::string note;     // what is wrong with it and what to do; empty: nothing
  bool is_self = false;
  bool is_coordinator = false;
  bool is_spare = false;
  int64_t budget_bytes = 0;              // memory that models may use
  int64_t promised_bytes = 0;            // the part of it promised to models
  int64_t read_bytes_s = 0;              // memory bandwidth
  int64_t operations_s = 0;              // of prompts; 0: not known
  int64_t link_bytes_s = 0;              // of its network; 0: not known
  std::vector<RoundTrip> round_trips{};  // measured by it; empty for this node
  // For links between ranks, by preference; empty: the same as for control.
  std::vector<DataAddress> data_addresses{};
  std::string life;  // differs after each start; empty: unknown
  // Its wall clock minus this node's when its last heartbeat arrived; 0 for this node.
  std::optional<double> clock_ahead_s;
  std::optional<double> power_w;  // of the processors and memory, recent
  MachineMeters meters{};         // recent
};

// A placed group of a model.
struct ClusterGroupReport {
  ModelPhase phase = ModelPhase::kWaiting;
  PlacementEpoch epoch;
  RankPlan plan;
};

struct ClusterModelReport {
  DesiredEntry entry;
  ModelPhase phase = ModelPhase::kWaiting;  // ready: at least one group is
  std::string sentence;                     // why it or a group waits; empty: none waits
  std::vector<ClusterGroupReport> groups;   // those known here, oldest first
  std::optional<LoadProgress> loading{};    // of the first group whose weights are being read
  // Time until it is unloaded if unused, as far as this node knows; nullopt: it stays.
  std::optional<int64_t> idle_left_ms;
};

struct ClusterReport {
  std::string cluster;  // its public id, 8 digits
  std::vector<ClusterNodeReport> nodes;
  std::vector<ClusterModelReport> models;  // the desired ones
  // Machines asking to join; to be shown only on this node's screen.
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
  // A node drains, exits and starts again; Ok once it has the order, kPeerLost if it never answers.
  virtual Status restart(const NodeId& node) = 0;
  // Lets another machine join without a PIN (cluster/join/join_token.h).
  virtual Result<std::string> make_join_token() = 0;
};

}  // namespace lockstep
