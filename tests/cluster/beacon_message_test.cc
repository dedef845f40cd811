#include "cluster/discovery/beacon_message.h"

#include <doctest/doctest.h>

#include "cluster/discovery/beacon_filter.h"
#include "cluster/test_clock.h"

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

struct Sender {
  KeyPair key = KeyPair::generate().value();
  ClusterKey cluster = ClusterKey::generate().value();

  std::vector<std::byte> beacon(uint64_t time_ms, const ClusterKey& member_of) const {
    BeaconMessage message{.cluster = member_of.id(),
                          .key = key.public_key(),
                          .time_ms = time_ms,
                          .control_port = 8601,
                          .name = "anna",
                          .version = "0.1.0"};
    return encode_beacon(message, key, member_of.derive(kBeaconPurpose).value()).value();
  }
  std::vector<std::byte> beacon(uint64_t time_ms) const { return beacon(time_ms, cluster); }
  NodeId id() const { return NodeId::of_public_key(key.public_key()).value(); }
};

BeaconFilter filter_of(const Sender& listener, const ClusterKey& cluster) {
  return {listener.id(), cluster.derive(kBeaconPurpose).value(), cluster.id()};
}

}  // namespace

TEST_CASE("beacon: it is read as written, and every changed byte is detected") {
  const Sender sender;
  const auto datagram = sender.beacon(1234567);
  CHECK(datagram.size() <= kBeaconBytesMax);
  const auto message = parse_beacon(datagram);
  REQUIRE(message);
  CHECK(message->name == "anna");
  CHECK(message->version == "0.1.0");
  CHECK(message->time_ms == 1234567);
  CHECK(message->control_port == 8601);
  CHECK(message->cluster == sender.cluster.id());
  const Digest key = sender.cluster.derive(kBeaconPurpose).value();
  CHECK(is_beacon_of_member(datagram, key));
  CHECK(is_beacon_signed(datagram, sender.key.public_key()));
  for (size_t i = 0; i < datagram.size(); ++i) {
    auto changed = datagram;
    changed[i] ^= std::byte{1};
    CHECK(!is_beacon_of_member(changed, key));
    if (i + 32 < datagram.size()) CHECK(!is_beacon_signed(changed, sender.key.public_key()));
  }
}

TEST_CASE("beacon: the longest name and version fit, and a truncated datagram is refused") {
  const Sender sender;
  BeaconMessage message{.cluster = sender.cluster.id(),
                        .key = sender.key.public_key(),
                        .time_ms = ~0ULL,
                        .control_port = 65535,
                        .name = std::string(63, 'n'),
                        .version = std::string(31, 'v')};
  auto datagram =
      encode_beacon(message, sender.key, sender.cluster.derive(kBeaconPurpose).value()).value();
  CHECK(parse_beacon(datagram));
  for (size_t length = 0; length < datagram.size(); ++length) {
    CHECK(!parse_beacon(std::span(datagram).first(length)));
  }
  datagram.push_back(std::byte{0});
  CHECK(!parse_beacon(datagram));
}

TEST_CASE("beacon filter: a copy of a beacon over another network path counts as a copy") {
  const Sender sender, listener;
  BeaconFilter filter = filter_of(listener, sender.cluster);
  const auto first = sender.beacon(1000);
  const auto seen = filter.look_at(first, kNow);
  REQUIRE(seen);
  CHECK(seen->id == sender.id());
  CHECK_FALSE(seen->is_copy);
  const auto copy = filter.look_at(first, kNow + 10ms);  // over IPv6
  REQUIRE(copy);
  CHECK(copy->is_copy);
  CHECK(filter.look_at(sender.beacon(2500), kNow + 1500ms));
  CHECK(filter.counts().accepted == 3);
}

TEST_CASE("beacon filter: a replay is dropped and counted") {
  const Sender sender, listener;
  BeaconFilter filter = filter_of(listener, sender.cluster);
  const auto old = sender.beacon(1000);
  CHECK(filter.look_at(old, kNow));
  CHECK(!filter.look_at(old, kNow + 600ms));
  CHECK(filter.look_at(sender.beacon(2000), kNow + 1s));
  CHECK(!filter.look_at(old, kNow + 1100ms));
  CHECK(filter.counts().replayed == 2);
  // A clock that was set back is accepted after a minute of silence.
  CHECK(!filter.look_at(sender.beacon(900), kNow + 30s));
  CHECK(filter.look_at(sender.beacon(900), kNow + 62s));
}

TEST_CASE("beacon filter: strangers, forgeries and this node itself are told apart") {
  const Sender sender, listener, other;
  BeaconFilter filter = filter_of(listener, sender.cluster);
  CHECK(!filter.look_at(other.beacon(1000), kNow));
  CHECK(filter.counts().other_cluster == 1);
  CHECK(filter.other_cluster_count(kNow + 10s) == 1);
  CHECK(filter.other_cluster_count(kNow + 61s) == 0);
  // Claims to be of this cluster, but does not have its key.
  BeaconMessage claimed = *parse_beacon(sender.beacon(1000));
  claimed.key = other.key.public_key();
  const auto forged =
      encode_beacon(claimed, other.key, other.cluster.derive(kBeaconPurpose).value()).value();
  CHECK(!filter.look_at(forged, kNow));
  CHECK(filter.counts().forged == 1);
  CHECK(!filter.look_at(listener.beacon(1000, sender.cluster), kNow));
  CHECK(filter.counts().own == 1);
  CHECK(!filter.look_at({}, kNow));
  CHECK(filter.counts().malformed == 1);
  // A member that uses the name of another node.
  auto renamed = sender.beacon(5000);
  const PublicKey victim = other.key.public_key();
  std::copy(victim.begin(), victim.end(), renamed.begin() + 8 + 4 + 16);
  const auto body = std::span<const std::byte>(renamed).first(renamed.size() - 32);
  const auto mac = hmac_sha256(sender.cluster.derive(kBeaconPurpose).value(), {body}).value();
  std::copy(mac.begin(), mac.end(), renamed.end() - 32);
  CHECK(!filter.look_at(renamed, kNow));
  CHECK(filter.counts().forged == 2);
  CHECK(filter.counts().accepted == 0);
}

TEST_CASE("beacon filter: a machine in no cluster hears all clusters, but only signed beacons") {
  const Sender sender, listener;
  BeaconFilter filter(listener.id(), std::nullopt, ClusterId());
  auto datagram = sender.beacon(1000);
  CHECK(filter.look_at(datagram, kNow));
  auto claimed_copy = datagram;  // with the same time, naming another cluster
  claimed_copy[8 + 4] ^= std::byte{1};
  CHECK(!filter.look_at(claimed_copy, kNow));
  CHECK(filter.look_at(datagram, kNow));
  datagram = sender.beacon(2000);
  datagram[70] ^= std::byte{1};
  CHECK(!filter.look_at(datagram, kNow));
}
