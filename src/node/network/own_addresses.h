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
};

// Empty if the system does not report them.
std::vector<OwnAddress> own_addresses();

}  // namespace lockstep
