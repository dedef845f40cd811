#include "planner/facts/measured_machine.h"

#include <algorithm>

#include "base/machine/available_memory.h"
#include "base/machine/machine.h"
#include "device/open/read_probe.h"

namespace lockstep {
namespace {

// Assumptions if only the memory's speed is measured: the fraction of it that kernels reach, the
// times of a CPU operation and an exchange, and a core's arithmetic.
constexpr double kKernelsOfRead = 0.8;
constexpr double kCpuKernelUs = 0.3;
constexpr double kCpuExchangeUs = 5;
constexpr double kOperationsPerUsOfCore = 0.4e6;
constexpr int kReadRounds = 3;
constexpr uint64_t kReadPart = 8;
constexpr double kReadBytesPerUsUnknown = 20e3;

constexpr uint64_t kReserveMin = uint64_t{512} << 20;
constexpr uint64_t kReservePart = 8;
constexpr uint64_t kReservePartMax = 4;

}  // namespace

uint64_t read_probe_bytes(std::optional<uint64_t> available_bytes, uint64_t bytes_max) {
  const uint64_t bytes = std::min(available_bytes.value_or(0) / kReadPart, bytes_max);
  return bytes >= kReadProbeBytesMin ? bytes : 0;
}

Result<MeasuredSpeed> measure_this_machine(uint64_t bytes_max) {
  const int cores = available_core_count();
  MeasuredSpeed speed{.operations_s = static_cast<int64_t>(kOperationsPerUsOfCore * 1e6 * cores)};
  const uint64_t bytes = read_probe_bytes(available_memory_bytes(), bytes_max);
  if (bytes == 0) return speed;
  const double read_gb_s = TRY(probe_read_gb_s(cores, kReadRounds, bytes));
  speed.read_bytes_s = static_cast<int64_t>(read_gb_s * 1e9);
  return speed;
}

Machine measured_machine(const std::string& name, uint64_t memory_bytes,
                         const MeasuredSpeed& speed) {
  const double read_bytes_per_us = speed.read_bytes_s > 0
                                       ? static_cast<double>(speed.read_bytes_s) / 1e6
                                       : kReadBytesPerUsUnknown;
  return {.name = name,
          .memory_bytes = memory_bytes,
          .read_bytes_per_us = read_bytes_per_us * kKernelsOfRead,
          .kernel_us = kCpuKernelUs,
          .exchange_us = kCpuExchangeUs,
          .operations_per_us = static_cast<double>(speed.operations_s) / 1e6,
          .has_estimates = true};
}

uint64_t budget_of(uint64_t available_bytes) {
  const uint64_t least = std::min(available_bytes / kReservePartMax, kReserveMin);
  return available_bytes - std::max(available_bytes / kReservePart, least);
}

std::optional<uint64_t> default_budget_bytes() {
  const auto available = available_memory_bytes();
  return available ? std::optional(budget_of(*available)) : std::nullopt;
}

}  // namespace lockstep
