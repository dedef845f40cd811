// Where Linux tells how busy a machine is: files of proc and sys, read below the folders given, so
// that tests can write their own. On other systems nothing is found there. Used by
// base/meters/machine_gauge.h.
//
// Formats: man 5 proc (/proc/stat, /proc/PID/statm, /proc/PID/task/TID/children);
// https://docs.kernel.org/hwmon/sysfs-interface.html and
// https://docs.kernel.org/driver-api/thermal/sysfs-api.html (temperatures in thousandths of a
// degree Celsius).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

// Time of all processors since the machine started, in ticks.
struct CpuTimes {
  uint64_t busy = 0;
  uint64_t all = 0;
};

// The text of /proc/stat.
std::optional<CpuTimes> parse_cpu_times(std::string_view text);
// The share of `after` - `before` that was busy, in percent; nullopt if no time has passed.
std::optional<double> busy_percent(const CpuTimes& before, const CpuTimes& after);

// Resident bytes of a process and of its children, but not of theirs. `proc` is /proc/PID.
std::optional<uint64_t> family_bytes(const std::filesystem::path& proc);

// The sensors of processors: those of the drivers for them, else the zones that say so. `sys` is
// /sys. At most kSensorsMax.
inline constexpr size_t kSensorsMax = 64;
std::vector<std::filesystem::path> temperature_files(const std::filesystem::path& sys);
// The highest; nullopt if none can be read.
std::optional<double> highest_celsius(const std::vector<std::filesystem::path>& files);

}  // namespace lockstep
