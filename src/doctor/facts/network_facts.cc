#include "doctor/facts/network_facts.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/machine/mac_interfaces.h"
#include "doctor/mac/mac_settings.h"

namespace lockstep {
namespace {

constexpr size_t kInterfacesMax = 256;

std::string address_text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, address, text.data(), text.size()) ? text.data() : "";
}

std::string subnet_text(const ifaddrs& entry) {
  if (entry.ifa_netmask == nullptr) return "";
  const auto& address = reinterpret_cast<const sockaddr_in&>(*entry.ifa_addr);
  const auto& mask = reinterpret_cast<const sockaddr_in&>(*entry.ifa_netmask);
  const in_addr network{.s_addr = address.sin_addr.s_addr & mask.sin_addr.s_addr};
  return fmt::format("{}/{}", address_text(AF_INET, &network), std::popcount(mask.sin_addr.s_addr));
}

void add_address(const ifaddrs& entry, InterfaceFacts& interface) {
  if (entry.ifa_addr == nullptr) return;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(*entry.ifa_addr);
    interface.addresses.push_back(address_text(AF_INET, &address.sin_addr));
    if (interface.subnet_v4.empty()) interface.subnet_v4 = subnet_text(entry);
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6&>(*entry.ifa_addr);
    interface.addresses.push_back(address_text(AF_INET6, &address.sin6_addr));
  }
}

InterfaceFacts interface_of(const ifaddrs& entry, const SystemFiles& files) {
  const std::string folder = fmt::format("/sys/class/net/{}/", entry.ifa_name);
  return {.name = entry.ifa_name,
          .is_up = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0,
          .is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0,
          .can_multicast = (entry.ifa_flags & IFF_MULTICAST) != 0,
          .is_wireless = files.exists(folder + "wireless") || files.exists(folder + "phy80211"),
          .is_half_duplex = files.text(folder + "duplex") == "half",
          .speed_mbit_s = std::max<int64_t>(files.number(folder + "speed").value_or(0), 0)};
}

}  // namespace

void add_mac_media(std::vector<InterfaceFacts>& interfaces, const MacAnswers& mac) {
  const auto known = parse_ifconfig(mac.interfaces);
  const HardwarePorts ports = parse_hardware_ports(mac.hardware_ports);
  const auto wireless = ports.find("Wi-Fi");
  for (InterfaceFacts& one : interfaces) {
    if (wireless != ports.end() && wireless->second == one.name) one.is_wireless = true;
    const MacInterface* const found = find_interface(known, one.name);
    if (found == nullptr) continue;
    one.speed_mbit_s = found->media_mbit_s;
    one.is_half_duplex = found->is_half_duplex;
  }
}

std::vector<InterfaceFacts> collect_interfaces(const SystemFiles& files, const MacAnswers& mac) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::vector<InterfaceFacts> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto known = std::find_if(found.begin(), found.end(), [&](const InterfaceFacts& one) {
      return one.name == entry->ifa_name;
    });
    if (known == found.end()) {
      if (found.size() == kInterfacesMax) continue;
      found.push_back(interface_of(*entry, files));
      known = std::prev(found.end());
    }
    add_address(*entry, *known);
  }
  add_mac_media(found, mac);
  return found;
}

}  // namespace lockstep
