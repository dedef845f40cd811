// WorkerHost: starts ranks on this machine for groups that other nodes lead, once this node has
// agreed to hold that part of a placement. Each has a stream to the leading node, over which its
// control channel is relayed; when the stream ends the process is killed, when the process ends the
// leading node is told how. The part runner allows and forbids; the stream of a node that leads
// nothing here is refused. Loop's thread only; nothing waits, except the destructor, for the
// processes that it kills.
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
#include "cluster/greeting.h"
#include "cluster/node_id.h"
#include "cluster/part.h"
#include "net/event_loop.h"
#include "net/fd_relay.h"
#include "net/frame_connection.h"
#include "node/worker_places.h"
#include "node/worker_stream.h"

namespace lockstep {

// A part of a placement that this node holds for the group of another node.
struct HostedPart {
  std::string model;
  PlacementEpoch epoch;
  NodeId leader;     // the node of rank 0
  std::string path;  // where the model lies on this machine
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

  // From now on its leader may have its ranks started. Allowed again, only what starts later
  // changes. kExhausted beyond kHostedMax, kCancelled while it is being forbidden, kInvalidArgument
  // without a host for each of its ranks.
  Status allow(HostedPart part);
  // Ends its processes; `done` comes once none is left, perhaps before this returns. What was never
  // allowed is done at once.
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
    std::optional<FrameConnection> next;  // waits for the end of this one
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
