// Beacon: announces this node repeatedly and hears the others' announcements: UDP multicast on
// every interface, IPv4 239.86.0.1 and IPv6 ff02::8600. Three datagrams in the first second, then
// one every 1.5 s on average. Interfaces that come or go are noticed within one period. Loop's
// thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "cluster/discovery/beacon_filter.h"
#include "cluster/discovery/beacon_message.h"
#include "cluster/identity.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "net/multicast.h"

namespace lockstep {

class Beacon {
 public:
  static constexpr uint16_t kPort = 8602;
  static constexpr const char* kGroupV4 = "239.86.0.1";
  static constexpr const char* kGroupV6 = "ff02::8600";
  static constexpr std::chrono::milliseconds kPeriod{1'500};

  struct Options {
    uint16_t port = kPort;
    bool loopback_only = false;
    // Announced; none: only listens. Name, key and cluster are the identity's.
    std::optional<uint16_t> control_port;
    std::string version;
    ProtocolRange protocols = kProtocols;
  };
  struct Sighting {
    NodeId id;
    BeaconMessage message;
    NetAddress address;    // its control port, at the datagram's source
    bool is_copy = false;  // of a beacon received by another path, or resent by anyone
  };
  using OnSighting = std::function<void(const Sighting&)>;

  // An identity without a cluster hears the beacons of all clusters and sends none.
  static Result<std::unique_ptr<Beacon>> start(EventLoop& loop, const Identity& identity,
                                               const Options& options, OnSighting on_sighting);

  const BeaconFilter::Counts& counts() const { return filter_.counts(); }
  size_t other_cluster_count() { return filter_.other_cluster_count(BeaconFilter::Clock::now()); }

 private:
  Beacon(EventLoop& loop, const Identity& identity, const Options& options,
         std::optional<Digest> beacon_key, MulticastSockets sockets, OnSighting on_sighting);
  void beat();
  void send();
  void receive();

  EventLoop& loop_;
  KeyPair key_;
  BeaconMessage message_;
  std::optional<Digest> beacon_key_;
  bool sends_ = false;
  OnSighting on_sighting_;
  BeaconFilter filter_;
  MulticastSockets sockets_;  // outlives the watches
  EventLoop::Watch watch_v4_, watch_v6_;
  EventLoop::Timer timer_, rest_;
  uint64_t beat_count_ = 0;
};

}  // namespace lockstep
