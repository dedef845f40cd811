// BeaconFilter: decides which received datagrams count, and counts the rejected ones. A pure
// function of bytes and times. A beacon counts once: its time must be later than that of the node's
// last one, except that copies by other paths (IPv4, IPv6, another interface) count for a moment. A
// node whose clock was set back is heard again after kForgetAfter of silence; a replay accepted
// then is only a hint to a wrong address. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "base/text_hash.h"
#include "cluster/discovery/beacon_message.h"
#include "cluster/node_id.h"

namespace lockstep {

class BeaconFilter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kCopyWindow{500};
  static constexpr std::chrono::seconds kForgetAfter{60};
  static constexpr size_t kNodesMax = 1024;
  static constexpr size_t kOtherClustersMax = 64;

  struct Counts {
    uint64_t accepted = 0;
    uint64_t own = 0;            // this node's, back from the network
    uint64_t malformed = 0;      // not a beacon
    uint64_t forged = 0;         // not made by a member, or not by the node it names
    uint64_t replayed = 0;       // not later than the node's last one
    uint64_t other_cluster = 0;  // of another cluster
    uint64_t too_many = 0;       // beyond kNodesMax
  };
  struct Sighting {
    NodeId id;
    BeaconMessage message;
    bool is_copy = false;  // of a beacon received before, which anyone may have resent
  };

  // Without a key (a machine in no cluster) signed beacons of all clusters pass: they are hints for
  // whom to ask, not members.
  BeaconFilter(const NodeId& own, std::optional<Digest> beacon_key, const ClusterId& cluster)
      : own_(own), beacon_key_(beacon_key), cluster_(cluster) {}

  std::optional<Sighting> look_at(std::span<const std::byte> datagram, Clock::time_point now);

  const Counts& counts() const { return counts_; }
  // Other clusters seen in the last minute.
  size_t other_cluster_count(Clock::time_point now);

 private:
  struct Last {
    uint64_t time_ms = 0;
    Clock::time_point seen_at;
  };
  bool remember(const NodeId& id, uint64_t time_ms, Clock::time_point now);
  void note_other_cluster(const ClusterId& cluster, Clock::time_point now);

  NodeId own_;
  std::optional<Digest> beacon_key_;
  ClusterId cluster_;
  std::unordered_map<NodeId, Last> last_;
  std::unordered_map<std::string, Clock::time_point, TextHash> other_clusters_;
  Counts counts_;
};

}  // namespace lockstep
