// ClusterDriver: what the Brain of this node lives in. It tells the Brain of connections, messages
// and the time, and does what the Brain says: sends, starts and stops parts, writes the desired
// state to the disk. Used by node/cluster_node.h, and through ClusterControl by the API.
//
// What belongs to the loop's thread says so; the rest may be called by any other thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/power_meter.h"
#include "base/result.h"
#include "cluster/brain.h"
#include "cluster/identity.h"
#include "cluster/peers.h"
#include "net/event_loop.h"
#include "node/cluster_control.h"
#include "node/part_runner.h"

namespace lockstep {

class ClusterDriver final : public ClusterControl {
 public:
  static constexpr std::chrono::hours kJoinTokenLifetime{1};

  struct Options {
    Peers::Options peers;
    std::filesystem::path folder;       // of the desired state
    BrainOptions brain;                 // its self and incarnation are set here
    std::shared_ptr<PowerGauge> power;  // null: heartbeats say nothing of it
    int64_t tick_ms = kTickMs;
    std::chrono::milliseconds answer_timeout{10'000};  // of load and unload
  };
  struct Events {
    // Loop's thread, never from within a call to this object: the desired state, which placements
    // serve, who is there or who coordinates has changed.
    std::function<void()> on_change;
    // Loop's thread: a user wants this node to drain, end and begin anew.
    std::function<void()> on_restart;
    // As Peers::Events has it.
    std::function<void(const NodeId&, const Channel&, FrameConnection)> on_stream;
  };

  // `identity` must be in a cluster. The loop and `runner` must outlive this. Events and calls to
  // `runner` may come before this returns. kExhausted if the port is taken.
  static Result<std::unique_ptr<ClusterDriver>> start(EventLoop& loop, const Identity& identity,
                                                      Options options, PlanFunction plan,
                                                      PartRunner& runner, Events events);
  // Leaves the cluster without ending the parts, which are the runner's. Calls that wait fail with
  // kCancelled; nothing is called any more. Not from the loop's thread.
  ~ClusterDriver() override;

  // Loop's thread.
  void part_event(const std::string& model, const PlacementEpoch& epoch, const PartEvent& event);
  // A request for it came in; as often as requests come.
  void model_used(const std::string& model);
  // Brain::on_model_kept().
  void model_kept(const std::string& model, int64_t keep_ms);
  // This node is about to end: the others place its models elsewhere from now on.
  void leave();
  const Brain& brain() const;
  Peers& peers();

  // What the plan function knows has changed. To be called from any thread and at any time while
  // the loop lives, also when this object is gone.
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
  std::shared_ptr<Impl> impl_;  // the only one that owns it; it ends on the loop's thread
};

}  // namespace lockstep
