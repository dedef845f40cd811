#include "node/network_speed.h"

#include <algorithm>

#ifdef __linux__
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <memory>
#endif

namespace lockstep {

#ifdef __linux__
namespace {

std::string address_text(const ifaddrs& one) {
  const socklen_t length =
      one.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = {};
  const int failed =
      ::getnameinfo(one.ifa_addr, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

// Mbit/s; the file is there and cannot be read, or says -1, where the driver does not know.
// https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
int64_t interface_bytes_s(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int64_t megabits = 0;
  constexpr int64_t kMegabitsMax = 10'000'000;
  if (!(file >> megabits) || megabits <= 0 || megabits > kMegabitsMax) return 0;
  return megabits * 125'000;
}

}  // namespace

int64_t network_bytes_s(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return kNetworkBytesDefault;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  int64_t best = 0;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (host != "*" && address_text(*one) != host) continue;
    best = std::max(best, interface_bytes_s(one->ifa_name));
  }
  return best > 0 ? best : kNetworkBytesDefault;
}
#else
int64_t network_bytes_s(const std::string&) {
  return kNetworkBytesDefault;
}
#endif

}  // namespace lockstep
