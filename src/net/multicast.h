// MulticastSockets: sends and receives datagrams of a multicast group on all interfaces, IPv4 and
// IPv6. Used for the beacons of a cluster (cluster/discovery/beacon.h). refresh() notices
// interfaces that appear or disappear. One thread; never blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

class MulticastSockets {
 public:
  static constexpr size_t kDatagramBytesMax = 1024;  // longer ones are cut: not beacons
  static constexpr size_t kInterfacesMax = 64;

  struct Options {
    std::string group_v4;
    std::string group_v6;  // of link-local scope
    uint16_t port = 0;
    bool loopback_only = false;  // for tests: nothing leaves the machine
  };
  struct Datagram {
    std::string host;  // the sender's address; with its scope ("fe80::1%eth0") if any
    std::vector<std::byte> bytes;
  };

  // Succeeds if one of the two families works.
  static Result<MulticastSockets> open(const Options& options);

  // Lists the machine's interfaces, joins the groups on new ones and leaves them on removed ones.
  // True if they changed.
  bool refresh();
  // Sends to both groups on every interface; returns the number of sent datagrams.
  int send(std::span<const std::byte> bytes);
  // The next received datagram, if any.
  std::optional<Datagram> receive();
  // To poll: readable when a datagram has arrived. -1 if the family is missing.
  int fd_v4() const { return socket_v4_.get(); }
  int fd_v6() const { return socket_v6_.get(); }
  // "eth0, lo"; for the log.
  std::string interface_names() const;

 private:
  struct Interface {
    unsigned index = 0;
    std::string name;
    bool has_v4 = false;
    bool has_v6 = false;
    auto operator<=>(const Interface&) const = default;
  };

  MulticastSockets() = default;
  std::vector<Interface> list_interfaces() const;
  enum class Membership { kJoin, kLeave };
  void set_membership(const Interface& interface, Membership membership);
  bool send_v4(unsigned index, std::span<const std::byte> bytes);
  bool send_v6(unsigned index, std::span<const std::byte> bytes);

  Options options_;
  UniqueFd socket_v4_;
  UniqueFd socket_v6_;
  std::vector<Interface> interfaces_;
};

}  // namespace lockstep
