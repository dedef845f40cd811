// The ports of VerbsDevices and their addresses.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "transport/verbs/verbs_devices.h"

#ifdef LOCKSTEP_HAS_VERBS

namespace lockstep {
namespace {

// A network card may have this many entries for its ports and addresses; the rest is ignored.
constexpr int kGidsMax = 1024;

bool is_ipv4(const IpBytes& address) {
  constexpr IpBytes kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.begin() + 12, address.begin());
}

}  // namespace

Result<VerbsPort> VerbsDevices::find(const IpBytes& address) {
  const std::lock_guard lock(mutex_);
  bool is_known = false;
  std::optional<Error> failure;  // of a device that may have been the one
  for (size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    for (uint8_t port = 1; port <= std::max<uint8_t>(device.attributes.phys_port_cnt, 1); ++port) {
      ibv_port_attr attributes{};
      if (const int failed = api_.query_port(device.context, port, &attributes); failed != 0) {
        failure = device_error(device, "asking for its port failed", failed);
        continue;
      }
      const int gid_index = find_gid(device, port, attributes, address);
      if (gid_index < 0) continue;
      is_known = true;
      if (attributes.state != IBV_PORT_ACTIVE) continue;
      return VerbsPort{.device = i,
                       .device_name = device.name,
                       .port = port,
                       .gid_index = gid_index,
                       .gid = address,
                       .lid = attributes.lid,
                       .mtu = attributes.active_mtu};
    }
  }
  if (failure && !is_known) return *failure;
  return Error{ErrorCode::kUnsupported,
               is_known ? "the RDMA port of this address is not active: is the cable in, and RDMA "
                          "switched on at both ends?"
                        : "no RDMA device has the address of the connection"};
}

// The index to use with `address`, -1 if the port does not have it.
int VerbsDevices::find_gid(const Device& device, uint8_t port, const ibv_port_attr& attributes,
                           const IpBytes& address) const {
  int first = -1;
  for (int index = 0; index < std::min(attributes.gid_tbl_len, kGidsMax); ++index) {
    ibv_gid gid{};
    if (api_.query_gid(device.context, port, index, &gid) != 0) continue;
    if (std::memcmp(gid.raw, address.data(), address.size()) != 0) continue;
    if (first < 0) first = index;
    if (api_.is_roce_v2 == nullptr) break;
    if (api_.is_roce_v2(api_, device.context, port, index)) return index;
  }
  return first;
}

std::vector<IpBytes> VerbsDevices::addresses() {
  const std::lock_guard lock(mutex_);
  std::vector<IpBytes> found;
  for (const Device& device : devices_) {
    for (uint8_t port = 1; port <= std::max<uint8_t>(device.attributes.phys_port_cnt, 1); ++port) {
      ibv_port_attr attributes{};
      if (api_.query_port(device.context, port, &attributes) != 0) continue;
      if (attributes.state != IBV_PORT_ACTIVE) continue;
      for (int index = 0; index < std::min(attributes.gid_tbl_len, kGidsMax); ++index) {
        ibv_gid gid{};
        IpBytes address{};
        if (api_.query_gid(device.context, port, index, &gid) != 0) continue;
        std::copy(std::begin(gid.raw), std::end(gid.raw), address.begin());
        const bool is_new = std::find(found.begin(), found.end(), address) == found.end();
        if (is_ipv4(address) && is_new) found.push_back(address);
      }
    }
  }
  return found;
}

std::vector<VerbsPortReport> VerbsDevices::ports() {
  const std::lock_guard lock(mutex_);
  std::vector<VerbsPortReport> found;
  for (const Device& device : devices_) {
    for (uint8_t port = 1; port <= std::max<uint8_t>(device.attributes.phys_port_cnt, 1); ++port) {
      ibv_port_attr state{};
      if (api_.query_port(device.context, port, &state) != 0) continue;
      found.push_back({.device = device.name,
                       .port = port,
                       .is_active = state.state == IBV_PORT_ACTIVE,
                       .is_ethernet = state.link_layer == IBV_LINK_LAYER_ETHERNET,
                       .addresses = address_texts(device, port, state.gid_tbl_len)});
    }
  }
  return found;
}

// A RoCE GID is an IPv6 address, or an IPv4 one mapped into it.
std::vector<std::string> VerbsDevices::address_texts(const Device& device, uint8_t port,
                                                     int gid_count) const {
  std::vector<std::string> found;
  for (int index = 0; index < std::min(gid_count, kGidsMax); ++index) {
    ibv_gid gid{};
    if (api_.query_gid(device.context, port, index, &gid) != 0) continue;
    in6_addr address{};
    std::memcpy(&address, gid.raw, sizeof(address));
    if (IN6_IS_ADDR_UNSPECIFIED(&address)) continue;  // not set
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&address);
    ::inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid.raw + 12 : gid.raw, text.data(),
                text.size());
    if (std::find(found.begin(), found.end(), text.data()) != found.end()) continue;
    found.push_back(text.data());
  }
  return found;
}

}  // namespace lockstep

#endif
