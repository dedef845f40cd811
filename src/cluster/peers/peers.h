// Peers: this node's connections to the other nodes of its cluster, one for control to each, and
// separate streams for data that must not delay it. Finds the others by beacon, by `--join`, from
// other nodes and from memory; calls them, is called, proves both ends
// (cluster/discovery/greeting.h), and lets machines join (cluster/join/join_host.h). A node that
// falls silent for 3 s, or does not read, is lost, and called again. A connected node is proved to
// be the member it claims to be: layers above need not check that.
//
// Used by the cluster's brain (messages), and by node/ (streams, status). All callbacks run on the
// loop's thread and must not wait. A node is connected, then messages come, then it is lost, and so
// on; the messages of one connection arrive in order and whole, or the connection is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/discovery/beacon_filter.h"
#include "cluster/discovery/greeting.h"
#include "cluster/identity.h"
#include "cluster/join/pin_desk.h"
#include "cluster/protocol.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

struct Peer {
  NodeId id;
  std::string name;
  std::string version;
  NetAddress address;  // of its control port, as this node reaches it
  // Ping time over the control connection, the minimum of the latest; 0: unknown.
  std::chrono::microseconds round_trip{0};
};

class Peers {
 public:
  static constexpr uint16_t kControlPort = 8601;
  static constexpr uint16_t kBeaconPort = 8602;
  static constexpr size_t kPeersMax = 256;
  static constexpr size_t kMessageBytesMax = (1 << 20) - 1;

  struct Options {
    std::string host = "*";  // to listen on: every address of the machine
    uint16_t port = kControlPort;
    bool uses_beacon = true;
    uint16_t beacon_port = kBeaconPort;
    bool beacon_loopback_only = false;
    std::vector<NetAddress> join;  // retried for ever
    std::string version;
    ProtocolRange protocols = kProtocols;
    bool remembers = true;  // in the identity's folder
    std::chrono::milliseconds ping_period{1'000};
    std::chrono::milliseconds silence_max{3'000};
  };
  struct Events {
    std::function<void(const Peer&)> on_connected;
    std::function<void(const NodeId&, std::string)> on_message;
    std::function<void(const NodeId&, const Error&)> on_lost;
    // A stream that another node opens. If unset, streams are refused.
    std::function<void(const NodeId&, const Channel&, FrameConnection)> on_stream;
  };
  struct Unusable {
    Peer peer;
    std::string reason;  // "it runs lockstep 2.0, which is too new for this node: update this node"
  };
  // The data that `status` shows.
  struct Report {
    std::vector<Peer> connected;
    std::vector<Unusable> unusable;  // members that cannot take part, heard in the last minute
    std::vector<Peer> absent;        // known and not connected; without a version
    bool is_one_expected = false;    // whether one may be back in a moment (AddressBook)
    std::vector<PinDesk::Pending> pins;
    size_t other_cluster_count = 0;  // seen in the last minute
    uint64_t strangers_refused = 0;  // callers that were not members
    uint64_t calls_refused = 0;      // too many at a time
    BeaconFilter::Counts beacons;
    std::string beacon_problem;  // empty: beacons are sent and heard, or not wanted
  };

  // `identity` must be in a cluster. kExhausted if the port is taken. The loop must outlive this;
  // not from its thread.
  static Result<std::unique_ptr<Peers>> start(EventLoop& loop, const Identity& identity,
                                              const Options& options, Events events);
  // Closes everything; no callback follows. Not from the loop's thread.
  ~Peers();

  uint16_t port() const;

  // Any thread. Messages to a node that is not connected are dropped: see on_connected and on_lost.
  // At most kMessageBytesMax.
  void send(const NodeId& node, std::string message);
  void send_to_all(std::string message);
  // Any thread. A separate connection to a connected node; `ready` is called on the loop's thread.
  // Frames of up to 1 MiB go both ways. It is closed with an error when the node is lost.
  void open_stream(const NodeId& node, const Channel& channel,
                   std::function<void(Result<FrameConnection>)> ready);
  // Any thread: an address to call from now on.
  void join(const NetAddress& address);
  // Any thread.
  Report report() const;
  // Any thread; see node_name_text().
  std::string name_of(const NodeId& node) const;

 private:
  struct Impl;
  Peers(EventLoop& loop, std::shared_ptr<Impl> impl) : loop_(loop), impl_(std::move(impl)) {}
  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
