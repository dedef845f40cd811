#include "node/network/network_speed.h"

#include <algorithm>
#include <fstream>

#include "base/machine/mac_interfaces.h"
#include "node/network/own_addresses.h"

namespace lockstep {
namespace {

// Mbit/s; unreadable or -1 if the driver does not know; missing on other systems.
// https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
int64_t interface_bytes_s(const std::string& name, const std::vector<MacInterface>& macs) {
  if (const MacInterface* mac = find_interface(macs, name)) return mac->media_mbit_s * 125'000;
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int64_t megabits = 0;
  constexpr int64_t kMegabitsMax = 10'000'000;
  if (!(file >> megabits) || megabits <= 0 || megabits > kMegabitsMax) return 0;
  return megabits * 125'000;
}

}  // namespace

int64_t network_bytes_s(const std::string& host) {
  const std::vector<MacInterface> macs = read_mac_interfaces();
  int64_t best = 0;
  for (const OwnAddress& own : own_addresses()) {
    if (host != "*" && own.host != host) continue;
    best = std::max(best, interface_bytes_s(own.interface, macs));
  }
  return best > 0 ? best : kNetworkBytesDefault;
}

}  // namespace lockstep
