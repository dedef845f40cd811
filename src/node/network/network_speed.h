// The speed of this machine's network, as its drivers report it (Linux's /sys, macOS's `ifconfig`).
// Used once, when a node starts; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

inline constexpr int64_t kNetworkBytesDefault = 125'000'000;  // per second: 1 Gbit/s

// Bytes per second of the interface with this numeric address, or with "*" of the fastest one that
// is up. kNetworkBytesDefault if unknown: other systems, wireless, virtual interfaces.
int64_t network_bytes_s(const std::string& host);

}  // namespace lockstep
