#include "cluster/cluster_key.h"

#include <cstring>

#include "base/hex.h"

namespace lockstep {

std::string ClusterId::text() const {
  return to_hex(bytes_);
}

std::string ClusterId::short_text() const {
  return to_hex(std::span(bytes_).first(4));
}

Result<ClusterKey> ClusterKey::generate() {
  std::array<std::byte, kBytes> bytes{};
  TRY(fill_random(bytes));
  return adopt(bytes);
}

Result<ClusterKey> ClusterKey::parse(std::string_view text) {
  std::array<std::byte, kBytes> bytes{};
  if (!from_hex(text, bytes)) {
    return Error{ErrorCode::kCorrupt, "a cluster key has 64 hex digits and nothing else"};
  }
  return adopt(bytes);
}

Result<ClusterKey> ClusterKey::adopt(const std::array<std::byte, kBytes>& bytes) {
  ClusterKey key;
  key.bytes_ = bytes;
  const Digest id = TRY(key.derive("cluster id"));
  std::array<std::byte, ClusterId::kBytes> first{};
  std::memcpy(first.data(), id.data(), first.size());
  key.id_ = ClusterId(first);
  return key;
}

std::string ClusterKey::text() const {
  return to_hex(bytes_);
}

Result<Digest> ClusterKey::derive(std::string_view purpose) const {
  return hkdf_sha256(bytes_, {}, "lockstep " + std::string(purpose));
}

bool ClusterKey::operator==(const ClusterKey& other) const {
  return is_same_secret(bytes_, other.bytes_);
}

}  // namespace lockstep
