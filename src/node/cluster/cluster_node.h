// ClusterNode: this machine as a node of a cluster: its loop, its connections to the other nodes,
// the desired state, the parts of models that run here, and the models that its clients can use.
// `lockstep serve` starts one, which outlives the server that uses it. One thread calls start(),
// drain() and the destructor, which ends the parts here and leaves the cluster within seconds; any
// thread the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/power_meter.h"
#include "base/meters/machine_gauge.h"
#include "base/result.h"
#include "cluster/identity.h"
#include "cluster/peers/peers.h"
#include "node/cluster/cluster_control.h"
#include "node/disks/model_desk.h"
#include "node/models/model_directory.h"
#include "node/network/data_network.h"
#include "node/worker/disk_cache.h"
#include "planner/facts/measured_machine.h"
#include "transport/link_options.h"

namespace lockstep {

struct ClusterNodeOptions {
  Identity identity;  // in a cluster
  Peers::Options peers;
  int64_t budget_bytes = 0;   // memory that models of the cluster may use
  bool is_spare = false;      // used only where the others are not enough
  bool keeps_shares = false;  // keeps what its ranks read of models' files, and copies of shares
  std::string version;
  DiskCache disk_cache{};                // of all ranks here, led from any node
  std::string device{};                  // where these compute; empty: the processor
  std::optional<MeasuredSpeed> speed{};  // of the device; nullopt: the processor's is measured
  // Both for heartbeats; null: not in them.
  std::shared_ptr<PowerGauge> power;
  std::shared_ptr<MachineGauge> machine;
  LinkOptions link = {.kind = LinkKind::kTcp};  // of groups over several machines
  // The networks of these links; two machines that share none use the control network.
  DataNetworks data_networks{};
  // A user wants this node to drain, exit and start again; called by the node's loop until the node
  // has ended.
  std::function<void()> on_restart;
  // Models that this machine runs besides the cluster's, by path or name: their files stay.
  std::vector<std::string> models_here{};
};

class ClusterNode {
 public:
  // Measures this machine for a fraction of a second, unless its speed is known. kExhausted if the
  // control port is taken.
  static Result<std::unique_ptr<ClusterNode>> start(ClusterNodeOptions options);
  ~ClusterNode();

  ClusterControl& control();
  std::shared_ptr<ModelDirectory> models();
  // Models on disks: here and, over the cluster, on the other nodes.
  ModelDesk& desk();
  uint16_t control_port() const;

  // Accepts no more requests of other nodes; returns when those in flight have ended, `limit` has
  // passed or stop() is called.
  void drain(std::chrono::milliseconds limit);
  // Ends drain().
  void stop();

 private:
  struct Impl;
  explicit ClusterNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
