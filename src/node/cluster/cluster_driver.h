// ClusterDriver: runs this node's Brain. It reports connections, messages and the time to the Brain
// and performs the actions that the Brain returns: sends, starts and stops parts, writes the
// desired state to disk. Used by node/cluster/cluster_node.h, and through ClusterControl by the
// API.
//
// Members of the loop's thread are marked; any other thread may call the rest.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/machine/power_meter.h"
#include "base/meters/machine_gauge.h"
#include "base/result.h"
#include "cluster/brain/brain.h"
#include "cluster/identity.h"
#include "cluster/peers/peers.h"
#include "net/event_loop.h"
#include "node/cluster/cluster_control.h"
#include "node/cluster/part_runner.h"

namespace lockstep {

class ClusterDriver final : public ClusterControl {
 public:
  static constexpr std::chrono::hours kJoinTokenLifetime{1};

  struct Options {
    Peers::Options peers;
    std::filesystem::path folder;  // of the desired state
    BrainOptions brain;            // its self and incarnation are set here
    // Null: not in heartbeats.
    std::shared_ptr<PowerGauge> power;
    std::shared_ptr<MachineGauge> machine;
    // This machine's for links between ranks, now: asked every few seconds by the loop's thread, so
    // that cables may be plugged in later. Null: none.
    std::function<std::vector<DataAddress>()> data_addresses;
    int64_t tick_ms = kTickMs;
    std::chrono::milliseconds answer_timeout{10'000};  // of load and unload
  };
  struct Events {
    // Loop's thread, never from within a call to this object: the desired state, the placements
    // that serve, the members or the coordinator have changed.
    std::function<void()> on_change;
    // Loop's thread: a user wants this node to drain, exit and start again.
    std::function<void()> on_restart;
    // See Peers::Events.
    std::function<void(const NodeId&, const Channel&, FrameConnection)> on_stream;
  };

  // `identity` must be in a cluster. The loop and `runner` must outlive this. Events and calls to
  // `runner` may arrive before this returns. kExhausted if the port is taken.
  static Result<std::unique_ptr<ClusterDriver>> start(EventLoop& loop, const Identity& identity,
                                                      Options options, PlanFunction plan,
                                                      PartRunner& runner, Events events);
  // Leaves the cluster without ending the parts, which belong to the runner. Waiting calls fail
  // with kCancelled; no callback follows. Not from the loop's thread.
  ~ClusterDriver() override;

  // Loop's thread.
  void part_event(const std::string& model, const PlacementEpoch& epoch, const PartEvent& event);
  // A request for the model arrived; call it for every request.
  void model_used(const std::string& model);
  // Brain::on_model_kept().
  void model_kept(const std::string& model, int64_t keep_ms);
  // This node is about to exit: the other nodes place its models elsewhere from now on.
  void leave();
  const Brain& brain() const;
  Peers& peers();

  // To be called when the inputs of the plan function have changed: from any thread, at any time
  // while the loop lives, even after this object is destroyed.
  std::function<void()> plan_again_call() const;

  ClusterReport report() const override;
  Status load(DesiredEntry entry) override;
  Status unload(std::string_view name) override;
  Status restart(const NodeId& node) override;
  Result<std::string> make_join_token() override;

 private:
  struct Impl;
  ClusterDriver(EventLoop& loop, std::shared_ptr<Impl> impl);

  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;  // the only owner; destroyed on the loop's thread
};

}  // namespace lockstep
