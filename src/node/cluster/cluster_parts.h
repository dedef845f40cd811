// ClusterParts: this node's parts of placements, as processes. It fetches the model to this
// machine, prepares what the ranks here need, and leads the group if rank 0 is here. Loop's thread
// only, except end_groups().
//
//   start_part   the model's files and those of what guesses its tokens
//                (node/fetch/model_fetcher.h)
//     leads      a LedGroup, which starts its ranks on all nodes; ready when all have joined
//     else       a WorkerHost that lets the leader start ranks here; ready at once
//   stop_part    the reverse; stopped when no process is left
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/brain/local_parts.h"
#include "cluster/peers/peers.h"
#include "net/event_loop.h"
#include "node/cluster/part_runner.h"
#include "node/fetch/model_fetcher.h"
#include "node/group/led_group.h"
#include "node/worker/remote_workers.h"
#include "node/worker/worker_host.h"

namespace lockstep {

class ClusterParts final : public PartRunner {
 public:
  struct Options {
    NodeId self;
    LinkOptions link;         // of groups over several machines
    WorkerCommand command{};  // of ranks on this machine
  };
  // Its dependencies; calls before connect() are kept for it.
  struct Surroundings {
    Peers& peers;
    ModelFetcher& fetcher;
    // How to reach ranks of a node over data networks; without paths: at its control address.
    std::function<Result<DataPaths>(const NodeId&)> data_paths_to;
    std::function<void(const std::string& model, const PlacementEpoch&, const PartEvent&)> on_event;
    std::function<void()> on_change;  // the answer of group() may have changed
  };

  ClusterParts(EventLoop& loop, Options options);
  ~ClusterParts() override;

  void connect(Surroundings surroundings);
  // Ends everything, without events. Then end_groups(), on another thread, waits for the groups
  // while the connections to the nodes of their ranks are still open.
  void disconnect();
  void end_groups();

  void start_part(const DesiredEntry& entry, const PlacementShare& part) override;
  void stop_part(const std::string& model, const PlacementEpoch& epoch) override;

  // The group that this node leads for a placement; null until it is ready for the first time.
  std::shared_ptr<GroupSupervisor> group(const std::string& model,
                                         const PlacementEpoch& epoch) const;
  std::vector<LoadProgress> loads() const override;
  // Requests of all groups that this node leads.
  int running() const;
  // A stream of kind "worker".
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);

 private:
  using Name = std::pair<std::string, PlacementEpoch>;
  struct Part {
    DesiredEntry entry;
    PlacementShare report;
    uint64_t fetch = 0;  // in flight; 0: none
    LocalPaths files{};  // once they are here
    EventLoop::Timer retry{};
    int retries = 0;
    bool is_ready = false;
    bool is_stopping = false;
    std::string failure{};  // why it is being ended; empty: it did not fail
    std::unique_ptr<LedGroup> led{};
  };

  void fetch(const Name& name);
  void fetch_draft_model(const Name& name);
  // Stores where the files are, and goes on with `next`.
  ModelFetcher::Events fetch_events(const Name& name, std::string LocalPaths::*path,
                                    void (ClusterParts::*next)(const Name&));
  void prepare(const Name& name);
  void lead(const Name& name, Part& part, const MachineHosts& hosts);
  Result<MachineHosts> machine_hosts(const PlacementShare& report) const;
  ClusterPlacesOptions places_of(const Part& part, const MachineHosts& hosts) const;
  void ready(const Name& name);
  void failed(const Name& name, const std::string& reason);
  void stopped(const Name& name);

  EventLoop& loop_;
  const Options options_;
  std::unique_ptr<WorkerHost> host_;  // until disconnect()
  std::unique_ptr<Surroundings> around_;
  std::map<Name, Part> parts_;
  std::vector<std::unique_ptr<LedGroup>> ending_;
};

}  // namespace lockstep
