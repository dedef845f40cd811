// Node ids made from numbers, in the order of the numbers.
#pragma once

#include <array>

#include "cluster/node_id.h"

namespace lockstep {

inline NodeId node(int number) {
  std::array<std::byte, NodeId::kBytes> bytes{};
  bytes[0] = static_cast<std::byte>(number);
  return NodeId(bytes);
}

}  // namespace lockstep
