#include "net/multicast.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace lockstep {
namespace {

#ifndef IPV6_JOIN_GROUP
#define IPV6_JOIN_GROUP IPV6_ADD_MEMBERSHIP
#define IPV6_LEAVE_GROUP IPV6_DROP_MEMBERSHIP
#endif

bool set_option(int fd, int level, int name, const auto& value) {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

// Several nodes on one machine may listen on the port; a multicast reaches each of them.
Result<UniqueFd> open_socket(int family, uint16_t port) {
  UniqueFd fd(::socket(family, SOCK_DGRAM, 0));
  bool is_set = fd.is_open() && ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) == 0 &&
                ::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0 &&
                set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
#ifdef __APPLE__
  is_set = is_set && set_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
#endif
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (family == AF_INET) {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    length = sizeof(address);
  } else {
    is_set = is_set && set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    auto& address = reinterpret_cast<sockaddr_in6&>(storage);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    length = sizeof(address);
  }
  if (!is_set || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) != 0) {
    return Error{ErrorCode::kUnsupported,
                 "UDP port " + std::to_string(port) +
                     " cannot be used for finding other machines: " + std::strerror(errno)};
  }
  return fd;
}

std::string host_of(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return host.data();
}

}  // namespace

Result<MulticastSockets> MulticastSockets::open(const Options& options) {
  MulticastSockets made;
  made.options_ = options;
  auto v4 = open_socket(AF_INET, options.port);
  auto v6 = open_socket(AF_INET6, options.port);
  if (!v4.ok() && !v6.ok()) return v4.error();
  if (v4.ok()) made.socket_v4_ = std::move(v4.value());
  if (v6.ok()) made.socket_v6_ = std::move(v6.value());
  made.refresh();
  return made;
}

std::vector<MulticastSockets::Interface> MulticastSockets::list_interfaces() const {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return interfaces_;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    const bool is_usable = (entry->ifa_flags & IFF_UP) != 0 &&
                           (is_loopback || (entry->ifa_flags & IFF_MULTICAST) != 0);
    if (!is_usable || entry->ifa_addr == nullptr) continue;
    if (options_.loopback_only && !is_loopback) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string name = entry->ifa_name;
    auto known = std::find_if(found.begin(), found.end(),
                              [&](const Interface& one) { return one.name == name; });
    if (known == found.end()) {
      const unsigned index = ::if_nametoindex(name.c_str());
      if (index == 0 || found.size() == kInterfacesMax) continue;  // 0: removed since
      found.push_back({.index = index, .name = name});
      known = std::prev(found.end());
    }
    (family == AF_INET ? known->has_v4 : known->has_v6) = true;
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool MulticastSockets::refresh() {
  std::vector<Interface> now = list_interfaces();
  if (now == interfaces_) return false;
  const auto is_in = [](const std::vector<Interface>& list, const Interface& interface) {
    return std::find(list.begin(), list.end(), interface) != list.end();
  };
  // The kernel keeps memberships of removed interfaces, up to a limit per socket, which a machine
  // that keeps starting containers would reach.
  for (const Interface& interface : interfaces_) {
    if (!is_in(now, interface)) set_membership(interface, Membership::kLeave);
  }
  for (const Interface& interface : now) {
    if (!is_in(interfaces_, interface)) set_membership(interface, Membership::kJoin);
  }
  interfaces_ = std::move(now);
  return true;
}

// Datagrams are sent even on interfaces where joining fails: one direction is enough for two nodes
// to meet.
void MulticastSockets::set_membership(const Interface& interface, Membership membership) {
  const bool joins = membership == Membership::kJoin;
  if (interface.has_v4 && socket_v4_.is_open()) {
    ip_mreqn group{};
    ::inet_pton(AF_INET, options_.group_v4.c_str(), &group.imr_multiaddr);
    group.imr_ifindex = static_cast<int>(interface.index);
    set_option(socket_v4_.get(), IPPROTO_IP, joins ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, group);
  }
  if (interface.has_v6 && socket_v6_.is_open()) {
    ipv6_mreq group{};
    ::inet_pton(AF_INET6, options_.group_v6.c_str(), &group.ipv6mr_multiaddr);
    group.ipv6mr_interface = interface.index;
    set_option(socket_v6_.get(), IPPROTO_IPV6, joins ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, group);
  }
}

int MulticastSockets::send(std::span<const std::byte> bytes) {
  int count = 0;
  for (const Interface& interface : interfaces_) {
    if (interface.has_v4 && socket_v4_.is_open()) count += send_v4(interface.index, bytes) ? 1 : 0;
    if (interface.has_v6 && socket_v6_.is_open()) count += send_v6(interface.index, bytes) ? 1 : 0;
  }
  return count;
}

bool MulticastSockets::send_v4(unsigned index, std::span<const std::byte> bytes) {
  ip_mreqn interface {};
  interface.imr_ifindex = static_cast<int>(index);
  if (!set_option(socket_v4_.get(), IPPROTO_IP, IP_MULTICAST_IF, interface)) return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(options_.port);
  ::inet_pton(AF_INET, options_.group_v4.c_str(), &to.sin_addr);
  return ::sendto(socket_v4_.get(), bytes.data(), bytes.size(), 0,
                  reinterpret_cast<const sockaddr*>(&to),
                  sizeof(to)) == static_cast<ssize_t>(bytes.size());
}

bool MulticastSockets::send_v6(unsigned index, std::span<const std::byte> bytes) {
  if (!set_option(socket_v6_.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, index)) return false;
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(options_.port);
  to.sin6_scope_id = index;
  ::inet_pton(AF_INET6, options_.group_v6.c_str(), &to.sin6_addr);
  return ::sendto(socket_v6_.get(), bytes.data(), bytes.size(), 0,
                  reinterpret_cast<const sockaddr*>(&to),
                  sizeof(to)) == static_cast<ssize_t>(bytes.size());
}

std::optional<MulticastSockets::Datagram> MulticastSockets::receive() {
  for (const UniqueFd* const socket : {&socket_v4_, &socket_v6_}) {
    if (!socket->is_open()) continue;
    std::array<std::byte, kDatagramBytesMax> buffer;
    sockaddr_storage from{};
    socklen_t length = sizeof(from);
    const ssize_t count = ::recvfrom(socket->get(), buffer.data(), buffer.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &length);
    if (count < 0) continue;
    return Datagram{host_of(from, length), {buffer.begin(), buffer.begin() + count}};
  }
  return std::nullopt;
}

std::string MulticastSockets::interface_names() const {
  std::string names;
  for (const Interface& interface : interfaces_) {
    names += (names.empty() ? "" : ", ") + interface.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace lockstep
