// The network: interfaces, multicast (nodes find each other by it), a node's ports, TCP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/finding.h"
#include "doctor/facts/network_facts.h"
#include "doctor/facts/system_files.h"

namespace lockstep {

// A datagram to the beacons' group on a separate port, and the addresses it came back from.
struct MulticastTest {
  std::string error;  // empty: it could be tried
  int sent = 0;
  std::vector<std::string> heard_from;  // addresses of this machine, without scopes
};

struct TakenPorts {
  bool http = false;     // TCP 8600, or the port of --port
  bool control = false;  // TCP 8601
  bool beacon = false;   // UDP 8602, by a program that does not share it
};

struct NetworkFacts {
  std::vector<InterfaceFacts> interfaces;
  MulticastTest multicast;
  uint16_t http_port = 0;
  TakenPorts taken;
  bool node_answers = false;  // on http_port
  std::string congestion_control;
  std::optional<int64_t> receive_bytes_max;  // of a TCP socket
  bool is_mac = false;
};

struct NetworkQuestion {
  std::vector<InterfaceFacts> interfaces;
  uint16_t http_port = 0;
  bool node_answers = false;
};

NetworkFacts collect_network(const SystemFiles& files, const NetworkQuestion& question);
Findings judge_network(const NetworkFacts& facts);

}  // namespace lockstep
