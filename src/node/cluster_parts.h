// ClusterParts: this node's parts of placements, as processes. It brings the model to this machine,
// prepares what the ranks here need, and leads the group where rank 0 is here. Loop's thread only,
// except the end.
//
//   start_part   the model's files (node/model_fetcher.h)
//     leads      an OwnedGroup, which starts its ranks on all nodes; ready when all have joined
//     else       a WorkerHost that lets the leader start ranks here; ready at once
//   stop_part    the reverse; stopped when no process is left
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/local_parts.h"
#include "cluster/peers.h"
#include "net/event_loop.h"
#include "node/model_fetcher.h"
#include "node/owned_group.h"
#include "node/part_runner.h"
#include "node/remote_workers.h"
#include "node/worker_host.h"

namespace lockstep {

class ClusterParts final : public PartRunner {
 public:
  struct Options {
    NodeId self;
    LinkOptions link;         // of groups over several machines
    WorkerCommand command{};  // of ranks on this machine
  };
  // What it works with, once that is there; calls before are kept.
  struct Surroundings {
    Peers& peers;
    ModelFetcher& fetcher;
    // Where ranks of a node are reached; empty: where the node is.
    std::function<std::string(const NodeId&)> data_host_of;
    std::function<void(const std::string& model, const PlacementEpoch&, const PartEvent&)> on_event;
    std::function<void()> on_change;  // group() may answer otherwise
  };

  ClusterParts(EventLoop& loop, Options options);
  ~ClusterParts() override;

  void connect(Surroundings surroundings);
  // Ends everything, without events, and does nothing any more. Then end_groups() waits for the
  // groups, on another thread, while the connections to the nodes of their ranks are still there.
  void disconnect();
  void end_groups();

  void start_part(const DesiredEntry& entry, const PartReport& part) override;
  void stop_part(const std::string& model, const PlacementEpoch& epoch) override;

  // The group that this node leads for a placement, once it has been ready; else null.
  std::shared_ptr<LocalGroup> group(const std::string& model, const PlacementEpoch& epoch) const;
  // Requests of all groups that this node leads.
  int running() const;
  // A stream of kind "worker".
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);

 private:
  using Name = std::pair<std::string, PlacementEpoch>;
  struct Part {
    DesiredEntry entry;
    PartReport report;
    uint64_t fetch = 0;  // under way; 0: none
    std::string path{};  // of the model, once it is here
    EventLoop::Timer retry{};
    int retries = 0;
    bool is_ready = false;
    bool is_stopping = false;
    std::string failure{};  // of one that ends because it failed
    std::unique_ptr<OwnedGroup> owned{};
  };

  void fetch(const Name& name);
  void prepare(const Name& name);
  void lead(const Name& name, Part& part, const MachineHosts& hosts);
  Result<MachineHosts> machine_hosts(const PartReport& report) const;
  ClusterPlacesOptions places_of(const Part& part, const MachineHosts& hosts) const;
  void ready(const Name& name);
  void failed(const Name& name, const std::string& reason);
  void stopped(const Name& name);

  EventLoop& loop_;
  const Options options_;
  std::unique_ptr<WorkerHost> host_;  // until disconnect()
  std::unique_ptr<Surroundings> around_;
  std::map<Name, Part> parts_;
  std::vector<std::unique_ptr<OwnedGroup>> ending_;
};

}  // namespace lockstep
