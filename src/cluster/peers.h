// Peers: this node's connections to the other nodes of its cluster, one for control to each, and
// streams of their own for what must not hold it up. Finds the others by beacon, by `--join`, by
// what other nodes tell and by what it remembers; calls them, is called, proves both ends (cluster/
// greeting.h), and lets machines join (cluster/join_host.h). A node that falls silent for 3 s, or
// does not read, is lost, and called again. What connects is who it says it is and a member:
// nothing above needs to check that again.
//
// Used by the cluster's brain (messages), and by node/ (streams, status). All callbacks come on the
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
#include "cluster/beacon_filter.h"
#include "cluster/greeting.h"
#include "cluster/identity.h"
#include "cluster/pin_desk.h"
#include "cluster/protocol.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"

namespace lockstep {

struct Peer {
  NodeId id;
  std::string name;
  std::string version;
  NetAddress address;  // of its control port, as this node reaches it
  // Of a ping over the control connection, the least of the last ones; 0: not known.
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
    std::vector<NetAddress> join;  // asked again and again, for ever
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
    // A stream that another node opens. Unset: streams are refused.
    std::function<void(const NodeId&, const Channel&, FrameConnection)> on_stream;
  };
  struct Unusable {
    Peer peer;
    std::string reason;  // "it runs lockstep 2.0, which is too new for this node: update this node"
  };
  // What `status` shows.
  struct Report {
    std::vector<Peer> connected;
    std::vector<Unusable> unusable;  // members that cannot take part, heard in the last minute
    std::vector<Peer> absent;        // known and not connected; without a version
    bool is_one_expected = false;    // of them in a moment (AddressBook)
    std::vector<PinDesk::Pending> pins;
    size_t other_cluster_count = 0;  // seen in the last minute
    uint64_t strangers_refused = 0;  // callers that were no members
    uint64_t calls_refused = 0;      // too many at a time
    BeaconFilter::Counts beacons;
    std::string beacon_problem;  // empty: beacons are sent and heard, or not wanted
  };

  // `identity` must be in a cluster. kExhausted if the port is taken. The loop must outlive this;
  // not from its thread.
  static Result<std::unique_ptr<Peers>> start(EventLoop& loop, const Identity& identity,
                                              const Options& options, Events events);
  // Closes everything; no callback comes any more. Not from the loop's thread.
  ~Peers();

  uint16_t port() const;

  // Any thread. To a node that is not connected it goes nowhere: on_connected and on_lost tell. At
  // most kMessageBytesMax.
  void send(const NodeId& node, std::string message);
  void send_to_all(std::string message);
  // Any thread. A connection of its own to a connected node; `ready` comes on the loop's thread.
  // Frames of up to 1 MiB go both ways. It is closed with an error when the node is lost.
  void open_stream(const NodeId& node, const Channel& channel,
                   std::function<void(Result<FrameConnection>)> ready);
  // Any thread: an address to look at from now on.
  void join(const NetAddress& address);
  // Any thread.
  Report report() const;
  // Any thread; as node_name_text().
  std::string name_of(const NodeId& node) const;

 private:
  struct Impl;
  Peers(EventLoop& loop, std::shared_ptr<Impl> impl) : loop_(loop), impl_(std::move(impl)) {}
  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
