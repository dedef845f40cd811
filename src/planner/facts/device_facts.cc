#include "planner/facts/device_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/machine/program_output.h"
#include "device/open/gpu_report.h"
#include "kernels/isa.h"

namespace lockstep {
namespace {

constexpr uint64_t kCardReserveMin = uint64_t{512} << 20;
constexpr uint64_t kCardReservePart = 16;
constexpr uint64_t kCardReservePartMax = 4;
constexpr uint64_t kProbePart = 8;
constexpr std::string_view kFailure = "lockstep: ";

std::string gib_of(uint64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (uint64_t{1} << 30));
}

// The rest of the last line that begins so: drivers print lines of their own.
std::string last_line(std::string_view output, std::string_view begin) {
  std::string found;
  while (!output.empty()) {
    const size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = output.substr(0, end);
    if (line.starts_with(begin)) found = line.substr(begin.size());
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return found;
}

uint64_t card_budget(uint64_t free_bytes) {
  const uint64_t least = std::min(free_bytes / kCardReservePartMax, kCardReserveMin);
  return free_bytes - std::max(free_bytes / kCardReservePart, least);
}

void measure(Device& device, DeviceFacts& facts) {
  DeviceProbe probe;
  if (facts.is_gpu) probe.bytes_max = std::min(probe.bytes_max, facts.free_bytes / kProbePart);
  const auto speed = probe_device(device, probe);
  if (speed.ok()) {
    facts.speed = speed.value();
  } else {
    facts.problem = speed.error().message;
  }
}

}  // namespace

Result<DeviceFacts> examine_device(std::string_view kind, int threads) {
  const KernelTable* const kernels = TRY(choose_kernels());
  const OpenedDevice opened =
      TRY(open_with_report({.kind = kind, .threads = threads, .kernels = kernels}));
  const GpuReport& gpu = opened.gpu;
  DeviceFacts facts{.kind = opened.kind,
                    .name = opened.device->description(),
                    .reason = opened.reason,
                    .is_gpu = !gpu.name.empty(),
                    .has_own_memory = gpu.has_own_memory,
                    .memory_bytes = gpu.memory_bytes,
                    .free_bytes = gpu.free_bytes};
  if (facts.is_gpu) facts.name = fmt::format("{} ({})", gpu.name, gpu.driver);
  measure(*opened.device, facts);
  return facts;
}

Json device_json(const DeviceFacts& facts) {
  JsonObject json{{"device", facts.kind}, {"name", facts.name}};
  if (!facts.reason.empty()) json["reason"] = facts.reason;
  if (facts.is_gpu) {
    json["has_own_memory"] = facts.has_own_memory;
    json["memory_bytes"] = facts.memory_bytes;
    json["free_bytes"] = facts.free_bytes;
  }
  if (facts.problem.empty()) {
    json["read_gb_s"] = facts.speed.read_gb_s;
    json["kernel_us"] = facts.speed.kernel_us;
    json["wait_us"] = facts.speed.wait_us;
    json["prefill_tflops"] = facts.speed.operations_s / 1e12;
  } else {
    json["problem"] = facts.problem;
  }
  return json;
}

Result<DeviceFacts> read_device(const Json& json) {
  const auto text = [&](std::string_view key) -> Result<std::string> {
    return TRY(get_string(json, key)).value_or("");
  };
  const auto bytes = [&](std::string_view key) -> Result<uint64_t> {
    return static_cast<uint64_t>(std::max<int64_t>(0, TRY(get_int(json, key)).value_or(0)));
  };
  const auto figure = [&](std::string_view key) -> Result<double> {
    return std::max(0.0, TRY(get_double(json, key)).value_or(0));
  };
  DeviceFacts facts;
  facts.kind = TRY(text("device"));
  if (facts.kind.empty()) return Error{ErrorCode::kCorrupt, "this describes no device"};
  facts.name = TRY(text("name"));
  facts.reason = TRY(text("reason"));
  facts.problem = TRY(text("problem"));
  facts.is_gpu = find(json, "has_own_memory") != nullptr;
  facts.has_own_memory = TRY(get_bool(json, "has_own_memory")).value_or(false);
  facts.memory_bytes = TRY(bytes("memory_bytes"));
  facts.free_bytes = TRY(bytes("free_bytes"));
  facts.speed.read_gb_s = TRY(figure("read_gb_s"));
  facts.speed.kernel_us = TRY(figure("kernel_us"));
  facts.speed.wait_us = TRY(figure("wait_us"));
  facts.speed.operations_s = TRY(figure("prefill_tflops")) * 1e12;
  return facts;
}

Result<DeviceFacts> examine_device_apart(const DeviceExaminer& examiner, const std::string& kind) {
  const ProgramAnswer answer =
      TRY(run_program({.program = examiner.program,
                       .arguments = {"bench", "device", "--device", kind, "--json"},
                       .timeout = examiner.timeout,
                       .with_errors = true}));
  if (answer.signal() > 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("--device {}: its test was ended by signal {}, so its driver crashes; "
                             "update the driver",
                             kind, answer.signal())};
  }
  if (answer.status != 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("--device {}: {}", kind, last_line(answer.output, kFailure))};
  }
  return read_device(TRY(parse_json("{" + last_line(answer.output, "{"))));
}

Result<uint64_t> device_budget(const DeviceFacts& facts, std::optional<uint64_t> machine_bytes,
                               uint64_t asked_bytes) {
  if (facts.is_gpu && asked_bytes > facts.memory_bytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--memory asks for {}, but {} has {}", gib_of(asked_bytes), facts.name,
                             gib_of(facts.memory_bytes))};
  }
  if (asked_bytes > 0) return asked_bytes;
  if (facts.has_own_memory) return card_budget(facts.free_bytes);
  if (!machine_bytes) {
    return Error{ErrorCode::kUnsupported,
                 "this system does not say how much memory is free: give --memory GIB"};
  }
  return facts.is_gpu ? std::min(*machine_bytes, facts.memory_bytes) : *machine_bytes;
}

MeasuredSpeed speed_of_device(const DeviceFacts& facts) {
  return {.read_bytes_s = static_cast<int64_t>(facts.speed.read_gb_s * 1e9),
          .operations_s = static_cast<int64_t>(facts.speed.operations_s)};
}

}  // namespace lockstep
