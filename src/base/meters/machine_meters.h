// MachineMeters: how busy this machine is and what is left of it, for people. A value, also sent
// between nodes in heartbeats (cluster/brain/messages.h). Unknown figures are absent.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

struct MachineMeters {
  std::optional<double> cpu_percent;         // of all processors together, 0 to 100
  std::optional<int64_t> memory_bytes;       // of the machine
  std::optional<int64_t> memory_used_bytes;  // not available to further programs
  std::optional<int64_t> process_bytes;      // resident, of this process and its workers
  std::optional<double> temperature_c;       // of the hottest processor
  std::optional<int64_t> disk_free_bytes;    // where models are stored
  std::optional<int64_t> uptime_s;           // of this process
  std::optional<int64_t> cores;              // processors that it may use

  bool operator==(const MachineMeters&) const = default;
};

}  // namespace lockstep
