// How fast this machine's network is, as far as its drivers say. Used once, when a node starts; any
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

inline constexpr int64_t kNetworkBytesDefault = 125'000'000;  // per second: 1 Gbit/s

// Bytes per second of the interface that has this numeric address, or with "*" of the fastest one
// that is up. kNetworkBytesDefault where nothing says so: other systems, wireless, virtual ones.
int64_t network_bytes_s(const std::string& host);

}  // namespace lockstep
