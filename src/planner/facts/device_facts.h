// The device that ranks compute on, as nodes and plans must know it: its memory, and its measured
// speed. Used by `lockstep bench device`, and by `lockstep serve` for --device.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/open/device_probe.h"
#include "json/json.h"
#include "planner/facts/measured_machine.h"

namespace lockstep {

struct DeviceFacts {
  std::string kind;    // as --device has it, never "auto": "cpu", "vulkan:1"
  std::string name;    // "AMD Radeon RX 7900 XTX (radv, Mesa 26.1.2)", "cpu (avx512, 8 threads)"
  std::string reason;  // why "auto" is the processor; else empty
  bool is_gpu = false;
  bool has_own_memory = false;  // of a GPU: apart from the machine's
  uint64_t memory_bytes = 0;    // of a GPU: all that it can use
  uint64_t free_bytes = 0;      // and what is left of it
  DeviceSpeed speed{};          // all 0: unknown
  std::string problem;          // why the speed is unknown
};

// Opens and measures the device within about a second, or longer where a driver has never compiled
// the kernels. Errors are those of open_device(). Runs drivers in this process, which a node must
// not.
Result<DeviceFacts> examine_device(std::string_view kind, int threads);
Json device_json(const DeviceFacts& facts);
Result<DeviceFacts> read_device(const Json& json);

// The same by a program, which a driver may crash: `PROGRAM bench device --device KIND --json`.
struct DeviceExaminer {
  std::string program;
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};
Result<DeviceFacts> examine_device_apart(const DeviceExaminer& examiner, const std::string& kind);

// Memory for models on this device: of a card what is free there less a sixteenth and at least 512
// MiB; of a GPU that shares the machine's memory no more than either has. `asked_bytes`, if not 0,
// is taken instead; kInvalidArgument if the GPU has less.
Result<uint64_t> device_budget(const DeviceFacts& facts, std::optional<uint64_t> machine_bytes,
                               uint64_t asked_bytes);
// As a node says it of itself; unknown if the device's speed is.
MeasuredSpeed speed_of_device(const DeviceFacts& facts);

}  // namespace lockstep
