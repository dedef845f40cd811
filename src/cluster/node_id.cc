#include "cluster/node_id.h"

#include <cstring>

#include "base/crypto/hasher.h"
#include "base/crypto/secrets.h"
#include "base/hex.h"

namespace lockstep {

Result<NodeId> NodeId::of_public_key(std::span<const std::byte> key) {
  return NodeId(sha256(key));
}

std::optional<NodeId> NodeId::parse(std::string_view text) {
  NodeId id;
  if (!from_hex(text, id.bytes_)) return std::nullopt;
  return id;
}

std::string NodeId::text() const {
  return to_hex(bytes_);
}

std::string NodeId::short_text() const {
  return to_hex(bytes_).substr(0, kShortDigits);
}

std::string node_name_text(const NodeId& id, std::string_view name, bool is_shared) {
  if (name.empty()) return id.short_text();
  return std::string(name) + (is_shared ? " (" + id.short_text() + ")" : "");
}

}  // namespace lockstep

// The bytes are already a hash.
size_t std::hash<lockstep::NodeId>::operator()(const lockstep::NodeId& id) const noexcept {
  size_t value = 0;
  std::memcpy(&value, id.bytes().data(), sizeof(value));
  return value;
}
