#include "node/network/own_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "base/files/unique_fd.h"

namespace lockstep {
namespace {

std::string address_text(const sockaddr& address) {
  const socklen_t length =
      address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = {};
  const int failed =
      ::getnameinfo(&address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

// The length of the address's network; all bits if the interface has no mask.
int64_t network_bits(const sockaddr* mask, int family) {
  std::array<uint8_t, sizeof(in6_addr)> bytes{};
  const bool is_ipv4 = family == AF_INET;
  const size_t size = is_ipv4 ? sizeof(in_addr) : sizeof(in6_addr);
  if (mask == nullptr) return static_cast<int64_t>(8 * size);
  const void* const from =
      is_ipv4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
              : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
  std::memcpy(bytes.data(), from, size);
  int64_t bits = 0;
  for (size_t i = 0; i < size; ++i) bits += std::popcount(bytes[i]);
  return bits;
}

}  // namespace

std::vector<OwnAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<OwnAddress> addresses;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    addresses.push_back({.host = address_text(*one->ifa_addr),
                         .interface = one->ifa_name,
                         .is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0,
                         .bits = network_bits(one->ifa_netmask, family),
                         .is_running = (one->ifa_flags & IFF_RUNNING) != 0});
  }
  return addresses;
}

// Connecting a UDP socket only looks up the route.
std::string own_address_towards(const std::string& host) {
  constexpr const char* kAnyPort = "9";
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), kAnyPort, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const UniqueFd socket(::socket(found->ai_family, SOCK_DGRAM, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (!socket.is_open() || ::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return "";
  }
  return address_text(reinterpret_cast<const sockaddr&>(own));
}

}  // namespace lockstep
