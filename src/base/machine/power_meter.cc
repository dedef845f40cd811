#include "base/machine/power_meter.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/machine/mac_system.h"
#include "base/machine/system_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Packages and their memory. A package's own parts (core, uncore) are included in its number; psys,
// the whole board, would count packages twice
// (https://docs.kernel.org/power/powercap/powercap.html).
bool is_counted(const fs::path& zone) {
  const std::string name = word_in(zone / "name");
  return name.starts_with("package") || name == "dram";
}

}  // namespace

std::optional<PowerMeter> PowerMeter::open() {
  if constexpr (kIsMac) {
    return ::geteuid() == 0 ? of_program("powermetrics") : std::nullopt;
  }
  return open(kSystemFolder);
}

std::optional<PowerMeter> PowerMeter::of_program(const std::string& program) {
  // Samples of a second, of the processors' power alone, each written at once.
  auto stream = ProgramStream::start(
      program, {"--samplers", "cpu_power", "-i", "1000", "--buffer-size", "1"});
  if (!stream.ok()) return std::nullopt;
  PowerMeter meter;
  meter.program_ = std::make_unique<ProgramStream>(std::move(stream.value()));
  return meter;
}

std::optional<PowerMeter> PowerMeter::open(const fs::path& folder) {
  PowerMeter meter;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    // "intel-rapl:0", "intel-rapl:0:1"; intel-rapl-mmio counts the same energy again.
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("intel-rapl:") || !is_counted(entry.path())) continue;
    const fs::path counter = entry.path() / "energy_uj";
    const auto now = number_in<uint64_t>(counter);
    if (!now || meter.zones_.size() == kZonesMax) continue;
    const auto range = number_in<uint64_t>(entry.path() / "max_energy_range_uj");
    meter.zones_.push_back({.counter = counter, .range_uj = range.value_or(0), .last_uj = *now});
  }
  return meter.zones_.empty() ? std::nullopt : std::optional(std::move(meter));
}

std::optional<double> PowerMeter::joules() {
  if (program_ != nullptr) {
    const auto output = program_->read();
    if (!output) return std::nullopt;
    samples_.add(*output);
    return samples_.joules();
  }
  for (Zone& zone : zones_) {
    const auto now = number_in<uint64_t>(zone.counter);
    if (!now) continue;
    if (*now >= zone.last_uj) {
      sum_uj_ += *now - zone.last_uj;
    } else if (zone.range_uj >= zone.last_uj) {
      sum_uj_ += zone.range_uj - zone.last_uj + *now;  // it wrapped
    }
    zone.last_uj = *now;
  }
  return static_cast<double>(sum_uj_) / 1e6;
}

PowerGauge::PowerGauge(std::optional<PowerMeter> meter, Clock::time_point now)
    : meter_(std::move(meter)), looked_at_(now) {}

std::optional<double> PowerGauge::watts(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!meter_ || now - looked_at_ < kInterval) return watts_;
  const auto joules = meter_->joules();
  if (!joules) {
    meter_.reset();
    return watts_ = std::nullopt;
  }
  watts_ = (*joules - joules_) / std::chrono::duration<double>(now - looked_at_).count();
  joules_ = *joules;
  looked_at_ = now;
  return watts_;
}

}  // namespace lockstep
