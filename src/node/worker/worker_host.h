// WorkerHost: starts ranks on this machine for groups that other nodes lead, once this node has
// agreed to hold that part of a placement. Each has a stream to the leading node, over which its
// control channel is relayed; when the stream ends the process is killed, when the process ends its
// exit is reported to the leading node. The part runner allows and forbids parts; streams of nodes
// that lead nothing here are refused. Loop's thread only; nothing waits, except the destructor, for
// the processes that it kills.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/discovery/greeting.h"
#include "cluster/node_id.h"
#include "cluster/part.h"
#include "net/event_loop.h"
#include "net/frames/fd_relay.h"
#include "net/frames/frame_connection.h"
#include "node/worker/worker_places.h"
#include "node/worker/worker_stream.h"

namespace lockstep {

// A part of a placement that this node holds for another node's group.
struct HostedPart {
  std::string model;
  PlacementEpoch epoch;
  NodeId leader;  // the node of rank 0
  LocalPaths files{};
  MachineHosts hosts{};
};

class WorkerHost {
 public:
  static constexpr size_t kHostedMax =
      kPartsMax;  // parts; each has at most kPlacementRanksMax ranks

  WorkerHost(EventLoop& loop, WorkerCommand command);
  ~WorkerHost();
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  // From now on the leader may start its ranks. Allowed again, the change affects only later
  // starts. kExhausted beyond kHostedMax, kCancelled while it is being forbidden, kInvalidArgument
  // without a host for each rank.
  Status allow(HostedPart part);
  // Ends its processes; `done` is called once none is left, perhaps before this returns, at once
  // for a part never allowed.
  void forbid(const std::string& model, const PlacementEpoch& epoch, std::function<void()> done);
  // Peers::Events::on_stream, for the kind "worker".
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);
  size_t process_count() const;

 private:
  struct Slot {
    std::unique_ptr<WorkerProcess> process;  // null: none
    FrameConnection connection;
    FdRelay relay;
    bool is_ending = false;
    std::optional<FrameConnection> next;  // waits until this one has ended
  };
  using PartName = std::pair<std::string, PlacementEpoch>;
  struct Part {
    HostedPart allowed;
    std::map<int, Slot> slots{};  // by rank
    bool is_forbidden = false;
    std::vector<std::function<void()>> done{};
  };

  Result<WorkerPurpose> judge(const NodeId& from, const Channel& channel) const;
  void start(const PartName& name, int rank, FrameConnection connection);
  void end(const PartName& name, int rank);
  void reap();
  void reap(const PartName& name, Part& part);
  void watch_ending();

  EventLoop& loop_;
  const WorkerCommand command_;
  std::map<PartName, Part> parts_;
  EventLoop::Timer reap_timer_;
  bool is_watching_ = false;
};

}  // namespace lockstep
