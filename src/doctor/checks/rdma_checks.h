// RDMA: the library, the devices, their ports and addresses, the memory they may lock; on macOS
// also the recovery system's switch and the bridge that occupies the ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/finding.h"
#include "doctor/facts/network_facts.h"
#include "doctor/facts/system_files.h"
#include "doctor/mac/mac_tools.h"
#include "doctor/mac/thunderbolt.h"
#include "transport/verbs/verbs_report.h"

namespace lockstep {

struct RdmaFacts {
  VerbsReport verbs;
  std::vector<std::string> kernel_devices;  // /sys/class/infiniband
  bool has_card_without_driver = false;     // an RDMA-capable card without an RDMA device
  std::vector<InterfaceFacts> interfaces;
  bool is_root = false;
  std::optional<uint64_t> locked_bytes_max;  // RLIMIT_MEMLOCK; nullopt: no limit
  bool is_apple = false;
  std::string apple_switch;                 // output of `rdma_ctl status`; empty: no such program
  std::string bridge;                       // the Thunderbolt bridge's interface
  std::vector<std::string> bridge_members;  // of it, if it is up
  std::vector<ThunderboltPort> thunderbolt;
};

RdmaFacts collect_rdma(const SystemFiles& files, const std::vector<InterfaceFacts>& interfaces,
                       const MacAnswers& mac = {});
// Adds the answers of macOS's tools: the switch, the bridge, the ports.
void add_apple_rdma(const MacAnswers& mac, RdmaFacts& facts);
Findings judge_rdma(const RdmaFacts& facts);

}  // namespace lockstep
