// links: cluster
// Any datagram is a beacon whose parts are within their limits, or none; nothing forged passes the
// filter. The first bytes of a stranger's connection and a file of remembered nodes are read under
// the same rule.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "cluster/discovery/address_book.h"
#include "cluster/discovery/beacon_filter.h"
#include "cluster/identity.h"
#include "cluster/join/join_frames.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const ClusterKey key = ClusterKey::generate().value();
  static const Digest beacon_key = key.derive(kBeaconPurpose).value();

  if (const auto message = parse_beacon(bytes)) {
    LOCKSTEP_CHECK(is_node_name(message->name) && message->control_port != 0);
    LOCKSTEP_CHECK(message->version.size() <= kVersionBytesMax);
  }
  BeaconFilter filter(NodeId(), beacon_key, key.id());
  LOCKSTEP_CHECK(!filter.look_at(bytes, BeaconFilter::Clock::time_point()));

  if (const auto request = parse_join_request(text); request.ok()) {
    LOCKSTEP_CHECK(is_node_name(request.value().name));
  }
  if (const auto frame = parse_join_frame(text); frame.ok()) {
    LOCKSTEP_CHECK(parse_join_frame(encode_join_frame(frame.value())).ok());
  }
  LOCKSTEP_CHECK(!parse_join_token(text).ok() || text.size() > 128);
  AddressBook book((NodeId()));
  book.read(text, AddressBook::Clock::time_point());
  AddressBook again((NodeId()));
  again.read(book.text(), AddressBook::Clock::time_point());
  LOCKSTEP_CHECK(again.text() == book.text());
  return 0;
}
