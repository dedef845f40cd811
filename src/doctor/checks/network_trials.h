// Network facts found by trying: whether a multicast comes back, and which ports are free. Each
// within a second. Any thread.
#pragma once

#include <cstdint>

#include "doctor/checks/network_checks.h"

namespace lockstep {

MulticastTest try_multicast();
TakenPorts try_ports(uint16_t http_port);

}  // namespace lockstep
