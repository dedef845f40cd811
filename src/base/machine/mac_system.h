// The figures of macOS that decide how much a node may use. Readers give nullopt or nothing on
// other systems; the decisions made from what they read are functions of values, which every
// platform compiles and tests. Used by base/machine/ and by the doctor. Any thread.
//
// Names of sysctl: <sys/sysctl.h> of Apple's SDK; `iogpu.wired_limit_mb` and
// `kern.memorystatus_vm_pressure_level` are named in xnu's sources (osfmk, bsd/kern) and by
// `sysctl -a`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

#ifdef __APPLE__
inline constexpr bool kIsMac = true;
#else
inline constexpr bool kIsMac = false;
#endif

// man 3 sysctlbyname. Nullopt: no such name, no number of 4 or 8 bytes, or another system.
std::optional<uint64_t> mac_sysctl_number(const char* name);
inline constexpr size_t kSysctlTextBytesMax = 256;
std::optional<std::string> mac_sysctl_text(const char* name);

// Pages as `host_statistics64` counts them (<mach/vm_statistics.h>): `free` includes those read
// ahead ("speculative" in vm_stat, which prints its "Pages free" without them).
struct MacPages {
  uint64_t free = 0;
  uint64_t purgeable = 0;    // their owners allow that they are dropped
  uint64_t file_backed = 0;  // can be read again from their files
  uint64_t page_bytes = 0;
};

// `sysctl kern.memorystatus_vm_pressure_level`.
enum class MacPressure { kNormal = 1, kWarning = 2, kCritical = 4 };
// Unknown numbers between two levels count as the lower one.
MacPressure mac_pressure(uint64_t level);
std::optional<MacPressure> read_mac_pressure();

// Free, and what the system can free at once. Under pressure it has freed the files' pages that
// nobody uses, so that those left are in use.
uint64_t mac_available_bytes(const MacPages& pages, MacPressure pressure);

std::optional<uint64_t> mac_swapped_bytes();  // `sysctl vm.swapusage`

// One kind of processors: hw.perflevelN.name and hw.perflevelN.logicalcpu; 0 is the fastest.
struct MacCoreKind {
  std::string name;  // "Performance", "Efficiency", "Super"; empty: the system does not say
  int count = 0;
};
inline constexpr int kMacCoreKindsMax = 8;
std::vector<MacCoreKind> mac_core_kinds();
// How many processors shall compute: all but "Efficiency", because the others would wait for those
// in every exchange; only the fastest kind if kinds have no names. 0: unknown.
int mac_computing_cores(const std::vector<MacCoreKind>& kinds);

// The memory that the GPU may hold: iogpu.wired_limit_mb, where 0 means the system's own choice,
// about three quarters of the memory.
uint64_t mac_gpu_bytes_max(uint64_t memory_bytes, uint64_t limit_mb);

// The heat's effect, <libkern/OSThermalNotification.h>: 0 nominal, 1 moderate, 2 heavy, 3 trapping,
// 4 sleeping. Nullopt: the system does not say.
std::optional<uint64_t> read_mac_thermal_level();

}  // namespace lockstep
