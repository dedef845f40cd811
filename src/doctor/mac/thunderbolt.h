// The Thunderbolt ports of a Mac and the cables between several, from `system_profiler
// SPThunderboltDataType -json` (man 8 system_profiler; two Macs' recorded outputs are in
// the tests of the cluster topology of github.com/jundot/omlx, one with an RDMA service in
// github.com/exo-explore/exo issue 1390). Every port is a domain with a UUID of its own; a Mac at
// the other end shows its port's, so that two machines' outputs give the cables between them. Used
// by doctor/checks/thunderbolt_checks.h. Pure functions over any bytes. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ThunderboltPort {
  int receptacle = 0;             // as printed at "receptacle_id_key"; 0: none
  std::string domain;             // UUID of this port
  std::string machine;            // "Mac Studio"
  int64_t gbit_s_max = 0;         // of a free port ("Up to 120 Gb/s"); 0: unknown
  int64_t gbit_s = 0;             // of the link; 0: nothing is connected
  std::string device;             // connected: "Mac Studio", "Envoy Ultra"; empty: nothing
  std::string peer_domain;        // of a connected Mac's port; empty: no Mac
  bool peer_offers_rdma = false;  // a Mac with RDMA switched on announces it as a service
  std::string interface;          // "en2", as `networksetup` names it; empty: unknown
};

inline constexpr size_t kThunderboltPortsMax = 64;

// Sorted by receptacle. kCorrupt for a text of another form, kExhausted beyond JSON's limits.
Result<std::vector<ThunderboltPort>> parse_thunderbolt(std::string_view text);

// Thunderbolt 5 is the first whose links do RDMA.
inline constexpr int64_t kRdmaGbitMin = 80;

// Mac Studios do no RDMA at the port next to the Ethernet socket, en2 (github.com/exo-explore/exo
// pull request 1551).
bool is_port_without_rdma(const ThunderboltPort& port);

struct MacPorts {
  std::string name;  // of the machine
  std::vector<ThunderboltPort> ports;
};

struct ThunderboltCable {
  std::string a, b;  // machines, in the order of the argument
  int port_a = 0, port_b = 0;
  int64_t gbit_s = 0;
  bool is_seen_by_both = true;  // false: one end has lost it (or its output is older)
};

inline constexpr size_t kCabledMachinesMax = 64;

// Each cable between two of the machines once.
std::vector<ThunderboltCable> thunderbolt_cables(const std::vector<MacPorts>& machines);

}  // namespace lockstep
