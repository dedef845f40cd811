#include "base/machine/available_memory.h"

#ifdef __linux__
#include <algorithm>

#include "base/machine/cgroup_memory.h"
#include "base/machine/meminfo.h"
#include "base/machine/system_file.h"
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <unistd.h>

#include "base/machine/mac_system.h"
#endif

namespace lockstep {

#ifdef __linux__
std::optional<uint64_t> available_memory_bytes() {
  std::optional<uint64_t> available = meminfo_bytes(text_in("/proc/meminfo"), "MemAvailable");
  const auto left = cgroup_memory_left("/sys/fs/cgroup", text_in("/proc/self/cgroup"));
  if (left) available = available ? std::min(*available, *left) : *left;
  return available;
}
#elif defined(__APPLE__)
std::optional<uint64_t> available_memory_bytes() {
  vm_statistics64_data_t statistics;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64,
                        reinterpret_cast<host_info64_t>(&statistics), &count) != KERN_SUCCESS) {
    return std::nullopt;
  }
  const MacPages pages{.free = statistics.free_count,
                       .purgeable = statistics.purgeable_count,
                       .file_backed = statistics.external_page_count,
                       .page_bytes = static_cast<uint64_t>(getpagesize())};
  return mac_available_bytes(pages, read_mac_pressure().value_or(MacPressure::kNormal));
}
#else
std::optional<uint64_t> available_memory_bytes() {
  return std::nullopt;
}
#endif

}  // namespace lockstep
