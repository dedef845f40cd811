// The addresses of this machine's interfaces that are up. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct OwnAddress {
  std::string host;       // numeric; link-local IPv6 with its interface
  std::string interface;  // "eth0"
  bool is_loopback = false;
  int64_t bits = 0;        // of the interface's network: 24 in 10.9.0.1/24
  bool is_running = true;  // as far as its driver knows, a cable leads somewhere
};

// Empty if the system does not report them.
std::vector<OwnAddress> own_addresses();

// The own address from which the system would call `host`, a numeric address; nothing is sent.
// Empty if there is no way there.
std::string own_address_towards(const std::string& host);

}  // namespace lockstep
