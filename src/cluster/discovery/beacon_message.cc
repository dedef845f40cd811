#include "cluster/discovery/beacon_message.h"

#include <algorithm>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/utf8.h"
#include "cluster/identity.h"

namespace lockstep {
namespace {

constexpr std::string_view kBeaconMagic = "lockstpB";
constexpr size_t kMacBytes = std::tuple_size_v<Digest>;
constexpr size_t kSignatureBytes = std::tuple_size_v<Signature>;
constexpr size_t kTailBytes = kSignatureBytes + kMacBytes;

void append_short_text(std::vector<std::byte>& out, std::string_view text) {
  append_number(out, static_cast<uint8_t>(text.size()));
  append_bytes(out, bytes_of(text));
}

std::string read_short_text(ByteReader& reader) {
  return std::string(text_of(reader.take(reader.number<uint8_t>())));
}

bool is_version_text(std::string_view version) {
  return !version.empty() && version.size() <= kVersionBytesMax &&
         std::all_of(version.begin(), version.end(), [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

Result<std::vector<std::byte>> encode_beacon(const BeaconMessage& message, const KeyPair& key,
                                             const Digest& beacon_key) {
  LOCKSTEP_CHECK(message.key == key.public_key());
  LOCKSTEP_CHECK(is_node_name(message.name) && is_version_text(message.version));
  std::vector<std::byte> out;
  append_bytes(out, bytes_of(kBeaconMagic));
  append_number(out, message.protocols.oldest);
  append_number(out, message.protocols.newest);
  append_bytes(out, message.cluster.bytes());
  append_bytes(out, message.key);
  append_number(out, message.time_ms);
  append_number(out, message.control_port);
  append_short_text(out, message.name);
  append_short_text(out, message.version);
  append_bytes(out, TRY(key.sign(out)));
  append_bytes(out, TRY(hmac_sha256(beacon_key, {out})));
  LOCKSTEP_CHECK(out.size() <= kBeaconBytesMax);
  return out;
}

std::optional<BeaconMessage> parse_beacon(std::span<const std::byte> datagram) {
  if (datagram.size() > kBeaconBytesMax) return std::nullopt;
  ByteReader reader(datagram);
  if (text_of(reader.take(kBeaconMagic.size())) != kBeaconMagic) return std::nullopt;
  BeaconMessage message;
  std::array<std::byte, ClusterId::kBytes> cluster{};
  message.protocols.oldest = reader.number<uint16_t>();
  message.protocols.newest = reader.number<uint16_t>();
  reader.fill(cluster);
  message.cluster = ClusterId(cluster);
  reader.fill(message.key);
  message.time_ms = reader.number<uint64_t>();
  message.control_port = reader.number<uint16_t>();
  message.name = read_short_text(reader);
  message.version = read_short_text(reader);
  if (reader.has_failed() || reader.rest().size() != kTailBytes || message.control_port == 0 ||
      message.protocols.oldest > message.protocols.newest || !is_node_name(message.name) ||
      !is_version_text(message.version)) {
    return std::nullopt;
  }
  return message;
}

bool is_beacon_of_member(std::span<const std::byte> datagram, const Digest& beacon_key) {
  if (datagram.size() < kTailBytes) return false;
  const auto mac = hmac_sha256(beacon_key, {datagram.first(datagram.size() - kMacBytes)});
  return mac.ok() && is_same_secret(mac.value(), datagram.last(kMacBytes));
}

bool is_beacon_signed(std::span<const std::byte> datagram, const PublicKey& key) {
  if (datagram.size() < kTailBytes) return false;
  Signature signature{};
  const auto found = datagram.last(kTailBytes).first(kSignatureBytes);
  std::copy(found.begin(), found.end(), signature.begin());
  return is_signed_by(key, datagram.first(datagram.size() - kTailBytes), signature);
}

}  // namespace lockstep
