#include "doctor/checks/processor_checks.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/machine/machine.h"

namespace lockstep {
namespace {

constexpr const char* kProcessors = "/sys/devices/system/cpu";
constexpr const char* kPowercap = "/sys/class/powercap";
constexpr int kConstraintsMax = 4;  // long term, short term, peak
constexpr double kLimitTolerance = 0.98;

void collect_frequency(const SystemFiles& files, ProcessorFacts& facts) {
  const std::string folder = fmt::format("{}/cpu0/cpufreq/", kProcessors);
  facts.driver = files.text(folder + "scaling_driver").value_or("");
  facts.governor = files.text(folder + "scaling_governor").value_or("");
  facts.highest_khz = files.number(folder + "cpuinfo_max_freq").value_or(0);
  facts.allowed_khz = files.number(folder + "scaling_max_freq").value_or(0);
}

// Each processor reports its package's count.
int64_t throttle_count(const SystemFiles& files) {
  int64_t count = 0;
  for (const std::string& name : files.names(kProcessors, "cpu")) {
    const auto found = files.number(
        fmt::format("{}/{}/thermal_throttle/package_throttle_count", kProcessors, name));
    count = std::max(count, found.value_or(0));
  }
  return count;
}

void collect_power(const SystemFiles& files, ProcessorFacts& facts) {
  for (const std::string& zone : files.names(kPowercap, "intel-rapl:")) {
    const std::string folder = fmt::format("{}/{}/", kPowercap, zone);
    const std::string package = files.text(folder + "name").value_or("");
    if (!package.starts_with("package")) continue;
    facts.has_energy_counters = facts.has_energy_counters || files.exists(folder + "energy_uj");
    facts.can_read_energy = facts.can_read_energy || files.number(folder + "energy_uj").has_value();
    for (int i = 0; i < kConstraintsMax; ++i) {
      const std::string constraint = fmt::format("{}constraint_{}_", folder, i);
      const auto limit = files.number(constraint + "power_limit_uw");
      const auto rated = files.number(constraint + "max_power_uw");
      if (!limit || *limit <= 0) continue;
      facts.power_limits.push_back({.package = package,
                                    .constraint = files.text(constraint + "name").value_or(""),
                                    .limit_w = static_cast<double>(*limit) / 1e6,
                                    .rated_w = static_cast<double>(rated.value_or(0)) / 1e6});
    }
  }
}

void judge_cores(const ProcessorFacts& facts, Findings& findings) {
  if (!facts.mac_kinds.empty() && facts.allowed_cores < facts.machine_cores) {
    return add_ok(findings, "cores",
                  fmt::format("{} of {} processors compute; those made for efficiency would hold "
                              "up the others",
                              facts.allowed_cores, facts.machine_cores));
  }
  if (facts.allowed_cores < facts.machine_cores) {
    return add_note(
        findings, "cores",
        fmt::format("this process may use {} of {} processors", facts.allowed_cores,
                    facts.machine_cores),
        "raise CPUQuota= of the service or --cpus of the container if this is not intended");
  }
  add_ok(findings, "cores", fmt::format("all {} processors may be used", facts.machine_cores));
}

// With intel_pstate and amd-pstate "powersave" is the usual governor, and does raise frequencies.
void judge_governor(const ProcessorFacts& facts, Findings& findings) {
  if (facts.governor.empty()) return;
  const char* const mend =
      "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
  const bool is_own_driver = facts.driver == "intel_pstate" ||
                             facts.driver.starts_with("amd-pstate-epp") ||
                             facts.driver.starts_with("amd_pstate_epp");
  if (facts.governor == "powersave" && !is_own_driver) {
    return add_problem(findings, "governor",
                       "the governor powersave holds the processors at their lowest frequency",
                       mend);
  }
  if (facts.governor == "performance") {
    return add_ok(findings, "governor", "the processors' governor is performance");
  }
  add_note(findings, "governor",
           fmt::format("the processors' governor is {}; short waits between ranks may let them "
                       "slow down",
                       facts.governor),
           mend);
}

void judge_heat(const ProcessorFacts& facts, Findings& findings) {
  if (facts.throttle_count > 0) {
    add_note(findings, "heat",
             fmt::format("the processor was too hot and slowed down {} times since the machine "
                         "was started",
                         facts.throttle_count),
             "clean the fans and give the machine more air");
  }
  if (facts.allowed_khz > 0 && facts.allowed_khz < facts.highest_khz) {
    add_note(findings, "frequency",
             fmt::format("the processors are held at {:.1f} of {:.1f} GHz",
                         static_cast<double>(facts.allowed_khz) / 1e6,
                         static_cast<double>(facts.highest_khz) / 1e6),
             fmt::format("echo {} | sudo tee "
                         "/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq",
                         facts.highest_khz));
  }
}

void judge_power(const ProcessorFacts& facts, Findings& findings) {
  for (const PowerLimit& limit : facts.power_limits) {
    if (limit.rated_w <= 0 || limit.limit_w >= limit.rated_w * kLimitTolerance) continue;
    add_note(findings, "power_limit",
             fmt::format("{} may take {:.0f} W ({}) of the {:.0f} W that it is built for",
                         limit.package, limit.limit_w, limit.constraint, limit.rated_w),
             "look for a power limit in the machine's firmware (PL1, cTDP) or in powercap");
  }
  if (facts.has_energy_counters && !facts.can_read_energy) {
    add_note(findings, "power_meter",
             "the processor counts the energy that it takes, but only root can read it",
             "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
  }
  if (facts.can_read_energy) add_ok(findings, "power_meter", "the energy taken can be read");
}

}  // namespace

ProcessorFacts collect_processor(const SystemFiles& files) {
  ProcessorFacts facts;
  facts.machine_cores = machine_core_count();
  facts.allowed_cores = available_core_count();
  facts.mac_kinds = mac_core_kinds();
  collect_frequency(files, facts);
  facts.throttle_count = throttle_count(files);
  collect_power(files, facts);
  return facts;
}

Findings judge_processor(const ProcessorFacts& facts) {
  Findings findings;
  judge_cores(facts, findings);
  judge_governor(facts, findings);
  judge_heat(facts, findings);
  judge_power(facts, findings);
  return findings;
}

}  // namespace lockstep
