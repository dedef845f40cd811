// Brain: a node's decisions about its cluster, as a pure state machine. Events and the time go in;
// actions come out, for the owner of sockets, disks and processes. It has no threads, waits for
// nothing, and draws no random numbers, so a simulation can run many of them (tests/cluster). It is
// not on the path of a token. One thread. It consists of Membership (which nodes are alive),
// DesiredState (what should be loaded), LocalParts (what is loaded here) and, on one node,
// Coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cluster/brain/coordinator.h"
#include "cluster/brain/local_parts.h"
#include "cluster/brain/membership.h"
#include "cluster/brain/messages.h"
#include "cluster/brain/plan_function.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

struct ClusterTime {
  int64_t ms = 0;       // monotonic, from any start
  int64_t wall_ms = 0;  // since 1970; may be wrong and may jump
};

struct SendAction {
  NodeId to;
  std::shared_ptr<const ClusterMessage> message;
};

// Start this node's ranks; report kReady or kFailed, and kStopped once a StopPartAction is done.
struct StartPartAction {
  DesiredEntry entry;
  PlacementShare part;
};

struct StopPartAction {
  std::string model;
  PlacementEpoch epoch;
};

// Write this state to disk and report that with on_persisted(); at most one is in flight. It holds
// what users asked for here and what takes effect once it is on disk.
struct PersistAction {
  int64_t revision = 0;
  std::shared_ptr<const DesiredState> state;
};

// The answer to a user's request: Ok once it is on this node's disk, and thereby in effect. After
// an error it is neither.
struct AnswerAction {
  int64_t request = 0;
  Status status = Ok{};
};

// A user wants this node to drain, exit and start again.
struct RestartAction {};

struct NewsAction {
  std::string sentence;  // for the log
};

using ClusterAction = std::variant<SendAction, StartPartAction, StopPartAction, PersistAction,
                                   AnswerAction, RestartAction, NewsAction>;
using ClusterActions = std::vector<ClusterAction>;

struct BrainOptions {
  NodeId self;
  int64_t incarnation = 0;  // random, not negative: differs at each start
  std::string program;      // lockstep's version
  std::string name;
  int64_t budget_bytes = 0;
  int64_t speed = 0;
  int64_t operations_s = 0;
  int64_t link_bytes_s = 0;
  bool is_spare = false;
  int64_t heartbeat_ms = 400;
  int64_t summary_ms = 1'000;        // between two to one node
  int64_t persist_retry_ms = 5'000;  // after a failed write
  MembershipOptions membership;
  CoordinatorOptions coordinator;
};

inline constexpr int64_t kTickMs = 200;  // period of on_tick()
inline constexpr size_t kRequestsWaitingMax = 1024;

class Brain {
 public:
  // `desired` is what is on this node's disk.
  Brain(const BrainOptions& options, DesiredState desired, PlanFunction plan, ClusterTime now);

  ClusterActions on_tick(ClusterTime now);
  // This node is about to exit: notifies the others, which drop it at once, and from then on only
  // listens. Orders are neither given nor taken any more.
  ClusterActions leave(ClusterTime now);
  // Once for each connection made, and for each lost; the loss of an old one may be reported after
  // the next was made.
  ClusterActions on_peer_connected(ClusterTime now, const NodeId& peer);
  ClusterActions on_peer_lost(ClusterTime now, const NodeId& peer);
  ClusterActions on_message(ClusterTime now, const NodeId& from,
                            const std::shared_ptr<const ClusterMessage>& message);
  ClusterActions on_part_event(ClusterTime now, const std::string& model,
                               const PlacementEpoch& epoch, const PartEvent& event);
  ClusterActions on_persisted(ClusterTime now, int64_t revision, const Status& status);
  // By a user: `request` comes back in the AnswerAction.
  ClusterActions load(ClusterTime now, int64_t request, DesiredEntry entry);
  ClusterActions unload(ClusterTime now, int64_t request, std::string_view name);
  // By a user, for this node or another alive one; the answer says that the order was sent.
  ClusterActions restart(ClusterTime now, int64_t request, const NodeId& node);
  // A request for a model arrived here; loads it if it is loaded on demand.
  ClusterActions on_model_used(ClusterTime now, const std::string& model);
  // Keeps a model that is loaded on demand for this long from now on, whatever was promised;
  // further uses, here and on other nodes, count as usual. Negative: for ever.
  ClusterActions on_model_kept(ClusterTime now, const std::string& model, int64_t keep_ms);
  // For a model loaded on demand: how long it stays if unused, as far as this node knows; 0: it may
  // be unloaded.
  int64_t idle_left_ms(ClusterTime now, const DesiredEntry& entry) const;

  // The inputs of the plan function have changed.
  ClusterActions plan_again(ClusterTime now);
  // For the next heartbeats; at most kNodesMax.
  void set_round_trips(std::vector<RoundTrip> round_trips);
  void set_power_mw(int64_t power_mw) { power_mw_ = power_mw; }
  void set_meters(const MachineMeters& meters) { meters_ = meters; }
  const MachineMeters& meters() const { return meters_; }
  // Loads of the groups that this node leads; at most kPartsMax.
  void set_loads(std::vector<LoadProgress> loads) { loads_ = std::move(loads); }
  const std::vector<LoadProgress>& loads() const { return loads_; }
  // At most kDataAddressesMax; empty: ranks use the node's control address.
  void set_data_addresses(std::vector<DataAddress> addresses);

  int64_t power_mw() const { return power_mw_; }
  const std::vector<DataAddress>& data_addresses() const { return data_addresses_; }

  NodeId coordinator() const { return membership_.coordinator(); }
  const DesiredState& desired() const { return desired_; }
  // desired() and users' requests made here that are not on disk yet.
  const DesiredState& asked() const { return asked_; }
  const Membership& membership() const { return membership_; }
  const LocalParts& parts() const { return parts_; }
  // As reported by the coordinator; empty until its first report.
  const std::vector<ModelProgress>& progress() const;

 private:
  void take(ClusterTime now, const NodeId& from, const DesiredSummary& summary);
  void take(ClusterTime now, const NodeId& from, const DesiredUpdate& update);
  void take(ClusterTime now, const NodeId& from, const ReserveOrder& order);
  void take(ClusterTime now, const NodeId& from, const ReserveReply& reply);
  void take(ClusterTime now, const NodeId& from, const StartOrder& order);
  void take(ClusterTime now, const NodeId& from, const StopOrder& order);
  void take(ClusterTime now, const NodeId& from, const RestartOrder& order);
  void take(ClusterTime now, const NodeId& from, const ForeignMessage& message);
  void take_heartbeat(ClusterTime now, const NodeId& from,
                      std::shared_ptr<const NodeHeartbeat> beat);

  void dispatch(ClusterTime now, const NodeId& from, const ClusterMessage& message);
  ClusterActions finish(ClusterTime now, bool is_tick = false);
  void act(ClusterTime now, bool is_tick);
  void coordinate(ClusterTime now);
  void end_unwanted_parts();
  void stop_part(const std::string& model, const PlacementEpoch& epoch);
  void merge(const DesiredEntry& entry);
  void persist_if_due(ClusterTime now);
  void write(ClusterTime now, int64_t request, DesiredEntry entry);
  void take_effect(ClusterTime now, const DesiredEntry& entry);
  void note_use(ClusterTime now, const std::string& model);
  void answer(int64_t request, Status status);
  bool obeys(const NodeId& from) const { return !is_leaving_ && from == membership_.coordinator(); }

  void send(const NodeId& to, ClusterMessage message);
  void send_all(ClusterMessage message);
  void beat_if_due(ClusterTime now);
  NodeHeartbeat own_beat(ClusterTime now) const;
  int64_t beat_key(ClusterTime now) const;

  // A user's request that waits for the disk.
  struct Write {
    int64_t revision = 0;  // of asked_, including this entry
    DesiredEntry entry;
  };

  BrainOptions options_;
  DesiredState desired_;
  DesiredState asked_;  // what the disk should have
  StampClock clock_;
  Membership membership_;
  LocalParts parts_;
  Coordinator coordinator_;

  std::map<std::string, int64_t, std::less<>> used_ms_;  // of desired models; may be in the future
  std::map<NodeId, int64_t> summary_ms_;                 // when sent; of members only
  std::map<int64_t, Write> waiting_;                     // by request; kRequestsWaitingMax
  std::vector<RoundTrip> round_trips_;
  int64_t power_mw_ = 0;
  MachineMeters meters_;
  std::vector<LoadProgress> loads_;
  std::vector<DataAddress> data_addresses_;
  int64_t revision_ = 0;  // of asked_
  int64_t persisted_ = 0;
  int64_t persisting_ = 0;  // 0: none in flight
  int64_t persist_at_ms_ = 0;
  int64_t sequence_ = 0;
  int64_t beat_at_ms_ = 0;
  int64_t beat_key_ = -1;   // of the parts of the last heartbeat that others act on
  int64_t parts_seen_ = 0;  // the revision of parts_ that the coordinator has seen
  bool is_leaving_ = false;
  bool is_news_ = true;  // something that the coordinator acts on has changed
  std::vector<ClusterMessage> to_self_;
  ClusterActions actions_;
};

}  // namespace lockstep
