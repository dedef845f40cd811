// The settings of a Mac that a node depends on: sleep, energy saving, heat, memory pressure, the
// GPU's share of the memory, open files, and launchd's service. Nothing is found on other systems.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/machine/mac_system.h"
#include "doctor/facts/finding.h"
#include "doctor/mac/mac_settings.h"
#include "doctor/mac/mac_tools.h"

namespace lockstep {

struct MacFacts {
  PowerSettings power;
  std::optional<uint64_t> speed_limit_percent;  // Intel
  std::optional<uint64_t> thermal_level;        // base/machine/mac_system.h
  std::optional<MacPressure> pressure;
  uint64_t memory_bytes = 0;             // 0: unknown
  std::optional<uint64_t> gpu_limit_mb;  // nullopt: an Intel Mac, or unknown
  std::optional<FileLimits> files;
  LaunchdService service;
  std::string domain;  // of the service, or in which it would be loaded: "gui/501", "system"
  std::string plist;   // that lies in a folder of launchd; empty: none
  bool is_root = false;
};

// From the tools' answers and the system's figures.
MacFacts collect_mac(const MacAnswers& answers);
Findings judge_mac(const MacFacts& facts);

}  // namespace lockstep
