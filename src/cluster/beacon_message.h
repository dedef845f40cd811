// The datagram by which a node says that it is there (cluster/beacon.h sends it), and its checks,
// as pure functions of bytes. Readable for everybody: a machine that wants to join must see which
// clusters there are. The signature shows that the node itself made it, the MAC that the node is a
// member. It is a hint where to call and no more: who answers there must prove himself anew
// (cluster/greeting.h).
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

#include "base/key_pair.h"
#include "base/result.h"
#include "base/secrets.h"
#include "cluster/cluster_key.h"
#include "cluster/protocol.h"

namespace lockstep {

inline constexpr size_t kBeaconBytesMax = 512;
inline constexpr size_t kVersionBytesMax = 31;

struct BeaconMessage {
  ProtocolRange protocols = kProtocols;
  ClusterId cluster;
  PublicKey key{};
  uint64_t time_ms = 0;  // of the sender's clock, since 1970; grows from beacon to beacon
  uint16_t control_port = 0;
  std::string name;
  std::string version;
};

// `key` must be the one of the message; `beacon_key` is ClusterKey::derive(kBeaconPurpose).
inline constexpr const char* kBeaconPurpose = "beacon";
Result<std::vector<std::byte>> encode_beacon(const BeaconMessage& message, const KeyPair& key,
                                             const Digest& beacon_key);

// Looks at the form alone.
std::optional<BeaconMessage> parse_beacon(std::span<const std::byte> datagram);
// Of a datagram that parse_beacon() has read.
bool is_beacon_of_member(std::span<const std::byte> datagram, const Digest& beacon_key);
bool is_beacon_signed(std::span<const std::byte> datagram, const PublicKey& key);

}  // namespace lockstep
