// The network: interfaces, multicast, by which nodes find each other, the ports of a node, TCP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/network_facts.h"
#include "doctor/system_files.h"

namespace lockstep {

// A datagram to the group of the beacons, on a port of its own, and who it came back from.
struct MulticastTest {
  std::string error;  // empty: it could be tried
  int sent = 0;
  std::vector<std::string> heard_from;  // addresses of this machine, without scopes
};

struct TakenPorts {
  bool http = false;     // TCP 8600, or what --port names
  bool control = false;  // TCP 8601
  bool beacon = false;   // UDP 8602, by somebody who does not share it
};

struct NetworkFacts {
  std::vector<InterfaceFacts> interfaces;
  MulticastTest multicast;
  uint16_t http_port = 0;
  TakenPorts taken;
  bool node_answers = false;  // on http_port
  std::string congestion_control;
  std::optional<int64_t> receive_bytes_max;  // of a TCP socket
};

struct NetworkQuestion {
  std::vector<InterfaceFacts> interfaces;
  uint16_t http_port = 0;
  bool node_answers = false;
};

NetworkFacts collect_network(const SystemFiles& files, const NetworkQuestion& question);
Findings judge_network(const NetworkFacts& facts);

}  // namespace lockstep
