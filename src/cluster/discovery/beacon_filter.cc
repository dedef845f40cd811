#include "cluster/discovery/beacon_filter.h"

namespace lockstep {

std::optional<BeaconFilter::Sighting> BeaconFilter::look_at(std::span<const std::byte> datagram,
                                                            Clock::time_point now) {
  auto message = parse_beacon(datagram);
  if (!message) {
    ++counts_.malformed;
    return std::nullopt;
  }
  const auto id = NodeId::of_public_key(message->key);
  if (!id.ok()) return std::nullopt;
  if (id.value() == own_) {
    ++counts_.own;
    return std::nullopt;
  }
  if (beacon_key_ && message->cluster != cluster_) {
    ++counts_.other_cluster;
    note_other_cluster(message->cluster, now);
    return std::nullopt;
  }
  // Cheap checks first: a signature is by far the most expensive.
  if (beacon_key_ && !is_beacon_of_member(datagram, *beacon_key_)) {
    ++counts_.forged;
    return std::nullopt;
  }
  const auto known = last_.find(id.value());
  const bool is_copy = known != last_.end() && known->second.time_ms == message->time_ms &&
                       now - known->second.seen_at <= kCopyWindow;
  const bool is_stale = !is_copy && known != last_.end() &&
                        message->time_ms <= known->second.time_ms &&
                        now - known->second.seen_at < kForgetAfter;
  if (is_stale) {
    ++counts_.replayed;
    return std::nullopt;
  }
  // The cluster's MAC is enough for a copy; without a key there is no MAC.
  const bool needs_signature = !is_copy || !beacon_key_;
  if (needs_signature && !is_beacon_signed(datagram, message->key)) {
    ++counts_.forged;
    return std::nullopt;
  }
  if (!is_copy && !remember(id.value(), message->time_ms, now)) return std::nullopt;
  ++counts_.accepted;
  return Sighting{id.value(), std::move(*message), is_copy};
}

// Records the time; false if the table is full.
bool BeaconFilter::remember(const NodeId& id, uint64_t time_ms, Clock::time_point now) {
  if (last_.size() >= kNodesMax && !last_.contains(id)) {
    std::erase_if(last_,
                  [&](const auto& entry) { return now - entry.second.seen_at >= kForgetAfter; });
    if (last_.size() >= kNodesMax) {
      ++counts_.too_many;
      return false;
    }
  }
  last_[id] = {time_ms, now};
  return true;
}

void BeaconFilter::note_other_cluster(const ClusterId& cluster, Clock::time_point now) {
  const std::string text = cluster.text();
  if (other_clusters_.size() < kOtherClustersMax || other_clusters_.contains(text)) {
    other_clusters_[text] = now;
  }
}

size_t BeaconFilter::other_cluster_count(Clock::time_point now) {
  std::erase_if(other_clusters_,
                [&](const auto& entry) { return now - entry.second >= kForgetAfter; });
  return other_clusters_.size();
}

}  // namespace lockstep
