// ClusterNode: this machine as a node of a cluster: its loop, its connections to the other nodes,
// what the cluster wants, the parts of models that run here, and the models that its clients can
// ask for. `lockstep serve` starts one; it outlives the server over it. start(), drain() and the
// destructor, which ends the parts that run here and leaves the other nodes, within seconds: one
// thread; the rest: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/power_meter.h"
#include "base/result.h"
#include "cluster/identity.h"
#include "cluster/peers.h"
#include "node/cluster_control.h"
#include "node/data_network.h"
#include "node/disk_cache.h"
#include "node/model_directory.h"
#include "transport/link_options.h"

namespace lockstep {

struct ClusterNodeOptions {
  Identity identity;  // in a cluster
  Peers::Options peers;
  int64_t budget_bytes = 0;   // memory that models of the cluster may use
  bool is_spare = false;      // used only where the others do not suffice
  bool keeps_shares = false;  // of models' files what its ranks read, and copies of others' shares
  std::string version;
  DiskCache disk_cache{};                       // of ranks on this node, whoever leads their group
  std::shared_ptr<PowerGauge> power;            // what heartbeats say of it; null: nothing
  LinkOptions link = {.kind = LinkKind::kTcp};  // of groups over several machines
  // Where their links go, between two machines that are both in it; else where control goes.
  std::optional<DataNetwork> data_network;
  // A user wants this node to drain, end and begin anew; the node's loop calls it, until the node
  // has ended.
  std::function<void()> on_restart;
};

class ClusterNode {
 public:
  // Measures this machine, for a fraction of a second. kExhausted if the control port is taken.
  static Result<std::unique_ptr<ClusterNode>> start(ClusterNodeOptions options);
  ~ClusterNode();

  ClusterControl& control();
  std::shared_ptr<ModelDirectory> models();
  uint16_t control_port() const;

  // Takes no more requests of other nodes; back once those under way have ended, `limit` has passed
  // or stop() is called.
  void drain(std::chrono::milliseconds limit);
  // Ends drain().
  void stop();

 private:
  struct Impl;
  explicit ClusterNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
