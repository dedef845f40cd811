// NodeId: identifies a node in every message and file of a cluster: the SHA-256 of its public key.
// A plain value with an order, so that all nodes agree on the lowest. Any thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

class NodeId {
 public:
  static constexpr size_t kBytes = 32;
  static constexpr size_t kShortDigits = 8;

  NodeId() = default;  // no node: all zeros
  explicit NodeId(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}

  static Result<NodeId> of_public_key(std::span<const std::byte> key);
  // 64 hex digits; anything else is invalid.
  static std::optional<NodeId> parse(std::string_view text);

  const std::array<std::byte, kBytes>& bytes() const { return bytes_; }
  std::string text() const;
  std::string short_text() const;  // the first 8 digits: for people, never to compare by

  auto operator<=>(const NodeId&) const = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

// For sentences: "alpha"; "alpha (1a2b3c4d)" if another node has that name too; "1a2b3c4d" if the
// name is unknown (empty).
std::string node_name_text(const NodeId& id, std::string_view name, bool is_shared);

}  // namespace lockstep

template <>
struct std::hash<lockstep::NodeId> {
  size_t operator()(const lockstep::NodeId& id) const noexcept;
};
