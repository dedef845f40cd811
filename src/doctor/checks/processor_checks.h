// Processors: how many this process may use, their frequencies and power limits, throttling, and
// whether their energy counters can be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/mac_system.h"
#include "doctor/facts/finding.h"
#include "doctor/facts/system_files.h"

namespace lockstep {

// A limit of a processor package's power (RAPL).
struct PowerLimit {
  std::string package;     // "package-0"
  std::string constraint;  // "long_term"
  double limit_w = 0;
  double rated_w = 0;  // what it is built for; 0: unknown
};

struct ProcessorFacts {
  int machine_cores = 0;
  int allowed_cores = 0;  // by affinity and by a container's CPU quota; on macOS by their kind
  std::vector<MacCoreKind> mac_kinds;  // empty on other systems
  std::string driver;                  // for frequencies: "intel_pstate"; empty: none found
  std::string governor;                // of the first processor
  int64_t highest_khz = 0;
  int64_t allowed_khz = 0;     // 0: unknown
  int64_t throttle_count = 0;  // since the machine's boot
  std::vector<PowerLimit> power_limits;
  bool has_energy_counters = false;
  bool can_read_energy = false;
};

ProcessorFacts collect_processor(const SystemFiles& files);
Findings judge_processor(const ProcessorFacts& facts);

}  // namespace lockstep
