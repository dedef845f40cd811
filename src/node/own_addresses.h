// The addresses of this machine's interfaces that are up. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct OwnAddress {
  std::string host;       // numeric; of a link-local IPv6 address with its interface
  std::string interface;  // "eth0"
  bool is_loopback = false;
};

// Empty where the system does not say.
std::vector<OwnAddress> own_addresses();

}  // namespace lockstep
