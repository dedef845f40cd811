// The datagram that announces a node (cluster/discovery/beacon.h sends it), and its checks, as pure
// functions of bytes. Anyone can read it: a machine that wants to join must see which clusters
// exist. The signature proves that the node itself made it, the MAC that the node is a member. It
// is only a hint where to call: the node there must prove itself again
// (cluster/discovery/greeting.h).
//
//   magic 8 | protocols 2 x 2 | cluster 16 | public key 32 | time 8 | port 2 | name 1 + n |
//   version 1 + n | signature 64, over all before | MAC 32, over all before; numbers little-endian
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/crypto/key_pair.h"
#include "base/crypto/secrets.h"
#include "base/result.h"
#include "cluster/cluster_key.h"
#include "cluster/protocol.h"

namespace lockstep {

inline constexpr size_t kBeaconBytesMax = 512;
inline constexpr size_t kVersionBytesMax = 31;

struct BeaconMessage {
  ProtocolRange protocols = kProtocols;
  ClusterId cluster;
  PublicKey key{};
  uint64_t time_ms = 0;  // the sender's clock, since 1970; grows from beacon to beacon
  uint16_t control_port = 0;
  std::string name;
  std::string version;
};

// `key` must be the one of the message; `beacon_key` is ClusterKey::derive(kBeaconPurpose).
inline constexpr const char* kBeaconPurpose = "beacon";
Result<std::vector<std::byte>> encode_beacon(const BeaconMessage& message, const KeyPair& key,
                                             const Digest& beacon_key);

// Checks only the form.
std::optional<BeaconMessage> parse_beacon(std::span<const std::byte> datagram);
// For a datagram that parse_beacon() has accepted.
bool is_beacon_of_member(std::span<const std::byte> datagram, const Digest& beacon_key);
bool is_beacon_signed(std::span<const std::byte> datagram, const PublicKey& key);

}  // namespace lockstep
