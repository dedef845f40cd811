#include "base/machine/mac_system.h"

#include <algorithm>
#include <limits>

#ifdef __APPLE__
#include <sys/sysctl.h>
#include <sys/types.h>

#include <array>
#include <cstring>

#if __has_include(<notify.h>)
#include <notify.h>
#else
// As <notify.h> of Apple's SDK declares them; libSystem has them.
extern "C" uint32_t notify_register_check(const char* name, int* token);
extern "C" uint32_t notify_get_state(int token, uint64_t* state);
extern "C" uint32_t notify_cancel(int token);
#endif
#endif

namespace lockstep {

#ifdef __APPLE__

std::optional<uint64_t> mac_sysctl_number(const char* name) {
  std::array<unsigned char, sizeof(uint64_t)> bytes{};
  size_t size = bytes.size();
  if (::sysctlbyname(name, bytes.data(), &size, nullptr, 0) != 0) return std::nullopt;
  uint32_t narrow = 0;
  uint64_t wide = 0;
  if (size == sizeof(wide)) {
    std::memcpy(&wide, bytes.data(), sizeof(wide));
  } else if (size == sizeof(narrow)) {
    std::memcpy(&narrow, bytes.data(), sizeof(narrow));
    wide = narrow;
  } else {
    return std::nullopt;
  }
  return wide;
}

std::optional<std::string> mac_sysctl_text(const char* name) {
  std::array<char, kSysctlTextBytesMax> text{};
  size_t size = text.size();
  if (::sysctlbyname(name, text.data(), &size, nullptr, 0) != 0) return std::nullopt;
  text.back() = '\0';
  return std::string(text.data());
}

std::optional<uint64_t> mac_swapped_bytes() {
  xsw_usage usage{};
  size_t size = sizeof(usage);
  if (::sysctlbyname("vm.swapusage", &usage, &size, nullptr, 0) != 0) return std::nullopt;
  return size == sizeof(usage) ? std::optional<uint64_t>(usage.xsu_used) : std::nullopt;
}

std::optional<uint64_t> read_mac_thermal_level() {
  int token = 0;
  if (::notify_register_check("com.apple.system.thermalpressurelevel", &token) != 0) {
    return std::nullopt;
  }
  uint64_t level = 0;
  const bool is_read = ::notify_get_state(token, &level) == 0;
  ::notify_cancel(token);
  return is_read ? std::optional(level) : std::nullopt;
}

#else

std::optional<uint64_t> mac_sysctl_number(const char*) {
  return std::nullopt;
}

std::optional<std::string> mac_sysctl_text(const char*) {
  return std::nullopt;
}

std::optional<uint64_t> mac_swapped_bytes() {
  return std::nullopt;
}

std::optional<uint64_t> read_mac_thermal_level() {
  return std::nullopt;
}

#endif

MacPressure mac_pressure(uint64_t level) {
  if (level >= 4) return MacPressure::kCritical;
  return level >= 2 ? MacPressure::kWarning : MacPressure::kNormal;
}

std::optional<MacPressure> read_mac_pressure() {
  const auto level = mac_sysctl_number("kern.memorystatus_vm_pressure_level");
  return level ? std::optional(mac_pressure(*level)) : std::nullopt;
}

uint64_t mac_available_bytes(const MacPages& pages, MacPressure pressure) {
  uint64_t count = pages.free + pages.purgeable;
  if (pressure == MacPressure::kNormal) count += pages.file_backed;
  return count * pages.page_bytes;
}

std::vector<MacCoreKind> mac_core_kinds() {
  std::vector<MacCoreKind> kinds;
  const uint64_t count = mac_sysctl_number("hw.nperflevels").value_or(0);
  for (uint64_t i = 0; i < std::min<uint64_t>(count, kMacCoreKindsMax); ++i) {
    const std::string prefix = "hw.perflevel" + std::to_string(i) + ".";
    const auto cores = mac_sysctl_number((prefix + "logicalcpu").c_str());
    if (!cores) break;
    kinds.push_back({.name = mac_sysctl_text((prefix + "name").c_str()).value_or(""),
                     .count = static_cast<int>(std::min<uint64_t>(*cores, 4096))});
  }
  return kinds;
}

int mac_computing_cores(const std::vector<MacCoreKind>& kinds) {
  int count = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const MacCoreKind& kind = kinds[i];
    if (i == 0 || (!kind.name.empty() && kind.name != "Efficiency")) count += kind.count;
  }
  return count;
}

uint64_t mac_gpu_bytes_max(uint64_t memory_bytes, uint64_t limit_mb) {
  constexpr uint64_t kMegabytesMax = std::numeric_limits<uint64_t>::max() >> 20;
  if (limit_mb == 0) return memory_bytes / 4 * 3;
  return std::min(memory_bytes, std::min(limit_mb, kMegabytesMax) << 20);
}

}  // namespace lockstep
