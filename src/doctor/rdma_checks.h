// RDMA: the library, the devices, their ports and addresses, the memory that they may lock; on
// macOS also the switch of the recovery system and the bridge that takes the ports away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/network_facts.h"
#include "doctor/system_files.h"
#include "transport/verbs_report.h"

namespace lockstep {

struct RdmaFacts {
  VerbsReport verbs;
  std::vector<std::string> kernel_devices;  // /sys/class/infiniband
  bool has_card_without_driver = false;     // a card that can do RDMA, and no device of it
  std::vector<InterfaceFacts> interfaces;
  bool is_root = false;
  std::optional<uint64_t> locked_bytes_max;  // RLIMIT_MEMLOCK; nullopt: no limit
  bool is_apple = false;
  std::string apple_switch;                 // what `rdma_ctl status` says; empty: no such program
  std::vector<std::string> bridge_members;  // of the Thunderbolt bridge, where it is up
};

RdmaFacts collect_rdma(const SystemFiles& files, const std::vector<InterfaceFacts>& interfaces);
Findings judge_rdma(const RdmaFacts& facts);

}  // namespace lockstep
