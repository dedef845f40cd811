// The network interfaces of this machine, as several checks need them. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/system_files.h"
#include "doctor/mac/mac_tools.h"

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

// Linux tells speeds and kinds in `files`, macOS in the answers of its tools.
std::vector<InterfaceFacts> collect_interfaces(const SystemFiles& files,
                                               const MacAnswers& mac = {});
// The speeds, and which is wireless, from `ifconfig -a` and `networksetup -listallhardwareports`.
void add_mac_media(std::vector<InterfaceFacts>& interfaces, const MacAnswers& mac);

}  // namespace lockstep
