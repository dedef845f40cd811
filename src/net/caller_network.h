// Which addresses count as one caller for limits: a single IPv4 address, or a whole IPv6 /64,
// because one machine is usually given a /64. Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// `address` without a port. "192.0.2.7" and "::ffff:192.0.2.7" are "192.0.2.7", and
// "2001:db8:1:2:a::1" is "2001:db8:1:2::/64". Every loopback address is "loopback", because all of
// them are this machine. Other text is returned unchanged.
std::string caller_network(const std::string& address);
// A number that identifies it, never 0.
uint64_t network_id(const std::string& network);

}  // namespace lockstep
