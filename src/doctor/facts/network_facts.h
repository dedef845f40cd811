// The network interfaces of this machine, as several checks need them. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/system_files.h"

namespace lockstep {

struct InterfaceFacts {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  bool can_multicast = false;
  bool is_wireless = false;
  bool is_half_duplex = false;
  int64_t speed_mbit_s = 0;            // 0: unknown
  std::vector<std::string> addresses;  // numeric, without scopes
  std::string subnet_v4;               // "10.0.0.0/24", of its first IPv4 address
};

std::vector<InterfaceFacts> collect_interfaces(const SystemFiles& files);

}  // namespace lockstep
