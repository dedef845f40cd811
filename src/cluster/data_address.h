// An address of a node for links between ranks, as heartbeats announce it. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

inline constexpr size_t kDataAddressesMax = 16;  // of one node
inline constexpr int64_t kAddressBitsMax = 128;  // IPv6
inline constexpr size_t kHostBytesMax = 64;      // of an address as text; IPv6 needs 45

struct DataAddress {
  std::string host;  // numeric; never link-local IPv6, which other machines cannot call
  int64_t bits = 0;  // of the interface's network: 30 in 10.9.0.1/30

  bool operator==(const DataAddress&) const = default;
};

}  // namespace lockstep
