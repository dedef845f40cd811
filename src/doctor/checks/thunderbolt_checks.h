// Thunderbolt: this Mac's ports with their speeds and what they lead to, the port that does no
// RDMA; and the cables between several Macs, from the outputs of each.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/facts/finding.h"
#include "doctor/mac/mac_settings.h"
#include "doctor/mac/mac_tools.h"
#include "doctor/mac/thunderbolt.h"

namespace lockstep {

struct ThunderboltFacts {
  std::string problem;                 // why the ports are unknown; empty: they are known
  std::vector<ThunderboltPort> ports;  // with their interfaces
};

ThunderboltFacts thunderbolt_facts(const MacAnswers& answers);
Findings judge_thunderbolt(const ThunderboltFacts& facts);

// A file with one machine's output of `system_profiler SPThunderboltDataType -json`; the machine's
// name is the file's, without its extension. kNotFound, kCorrupt.
Result<MacPorts> read_mac_ports(const std::string& path);
// Each cable, and the pairs of machines without one.
Findings judge_cables(const std::vector<MacPorts>& machines);

}  // namespace lockstep
