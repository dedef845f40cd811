// The kinds of devices by their names, as --device says them (device/open/open_device.cc opens
// them).
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"

namespace lockstep {

// Where ranks compute if nothing else is said.
inline constexpr std::string_view kDeviceDefault = "cpu";
// For people; there are test devices besides.
inline constexpr std::string_view kDeviceKinds = "auto, cpu, vulkan or vulkan:N";

// The number of the GPU in "vulkan", which is the first, or "vulkan:N"; empty for any other text.
std::optional<int> parse_vulkan(std::string_view kind);

// A machine that a SlowedDevice plays (device/open/slowed_device.h).
struct SlowedMachine {
  double read_gb_s = 0;  // positive
  double kernel_us = 0;  // per operation, in addition to reading
};
// Parses "slowed:READ_GB_S" or "slowed:READ_GB_S/KERNEL_US"; empty for any other text.
std::optional<SlowedMachine> parse_slowed(std::string_view kind);

// A rank's entry in a comma-separated list of device kinds; a single entry is for every rank.
// kInvalidArgument if there are fewer entries than ranks.
Result<std::string_view> device_kind_of(std::string_view kinds, int rank);

// kInvalidArgument for a kind that does not exist, kUnsupported for one that this program was built
// without. Whether the machine has the device is seen when it is opened.
Status check_device_kind(std::string_view kind);
// The same for a list and the number of ranks.
Status check_device_kinds(std::string_view kinds, int ranks);

}  // namespace lockstep
