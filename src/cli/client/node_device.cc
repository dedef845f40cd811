#include "cli/client/node_device.h"

#include <fmt/core.h>

#include "base/bytes_text.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "device/device_kinds.h"

namespace lockstep {
namespace {

void log_device(const DeviceFacts& facts) {
  if (!facts.is_gpu) return log_info("models compute on {}: {}", facts.name, facts.reason);
  log_info("models compute on {}: {} of {}{}", facts.name, bytes_text(facts.free_bytes),
           facts.has_own_memory ? "its own memory" : "the machine's memory",
           facts.problem.empty()
               ? fmt::format(", weights are read at {:.3g} GB/s", facts.speed.read_gb_s)
               : "; its speed is unknown: " + facts.problem);
}

}  // namespace

Result<DeviceFacts> node_device(const std::string& kinds, bool has_own_groups) {
  TRY(check_device_kinds(kinds, 0));
  if (kinds.find(',') != std::string::npos) {
    if (has_own_groups) return DeviceFacts{.kind = std::string(kDeviceDefault)};
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--device {} names a device for each rank of this machine, so give a "
                             "MODEL and --ranks, or one device",
                             kinds)};
  }
  if (kinds != "auto" && !parse_vulkan(kinds)) return DeviceFacts{.kind = kinds};
  const DeviceFacts facts = TRY(examine_device_apart({.program = TRY(own_program_file())}, kinds));
  log_device(facts);
  return facts;
}

}  // namespace lockstep
