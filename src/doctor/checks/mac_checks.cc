#include "doctor/checks/mac_checks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/bytes_text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// As many as base/files/open_files.h asks for: a connection is a descriptor.
constexpr uint64_t kOpenFilesMin = 10'240;
// Below it the system swaps as soon as the GPU takes its share.
constexpr uint64_t kSystemBytesMin = uint64_t{4} << 30;
constexpr const char* kPlistName = "lockstep.plist";

// The first that exists, as packaging/launchd says where to put it.
void find_plist(MacFacts& facts) {
  const char* const home = std::getenv("HOME");
  const std::array<std::pair<fs::path, bool>, 2> places{{
      {fs::path(home != nullptr ? home : "/") / "Library/LaunchAgents" / kPlistName, false},
      {fs::path("/Library/LaunchDaemons") / kPlistName, true},
  }};
  for (const auto& [path, is_system] : places) {
    std::error_code ignored;
    if (!facts.plist.empty() || !fs::exists(path, ignored)) continue;
    facts.plist = path.string();
    if (!facts.service.is_loaded && is_system) facts.domain = "system";
  }
}

void judge_sleep(const PowerSettings& power, Findings& findings) {
  if (power.sleep_minutes.value_or(0) > 0 && !power.is_sleep_disabled) {
    add_problem(findings, "sleep",
                fmt::format("this Mac falls asleep after {} idle minutes, and its node with it",
                            *power.sleep_minutes),
                "sudo pmset -a sleep 0");
  } else if (power.sleep_minutes || power.is_sleep_disabled) {
    add_ok(findings, "sleep", "this Mac does not fall asleep");
  }
  if (power.restarts_after_power_failure == false) {
    add_note(findings, "power_failure", "this Mac stays off after a power failure",
             "sudo pmset -a autorestart 1");
  }
  if (power.is_low_power) {
    add_note(findings, "low_power", "this Mac saves energy (low power mode), which costs speed",
             "sudo pmset -a lowpowermode 0");
  }
}

void judge_mac_heat(const MacFacts& facts, Findings& findings) {
  const char* const mend = "clean the fans and give the machine more air";
  if (facts.speed_limit_percent.value_or(100) < 100) {
    return add_note(findings, "heat",
                    fmt::format("the processor is too hot and runs at {} % of its speed",
                                *facts.speed_limit_percent),
                    mend);
  }
  if (!facts.thermal_level) return;
  constexpr std::array<const char*, 3> kNames{"nominal", "moderate", "heavy"};
  const bool is_named = *facts.thermal_level < kNames.size();
  const std::string name = is_named ? kNames.at(*facts.thermal_level) : "critical";
  if (*facts.thermal_level == 0) {
    add_ok(findings, "heat", "this Mac is not too hot (nominal)");
  } else {
    add_note(findings, "heat",
             fmt::format("this Mac is hot and slows its processors down ({})", name), mend);
  }
}

void judge_mac_memory(const MacFacts& facts, Findings& findings) {
  if (facts.pressure && *facts.pressure != MacPressure::kNormal) {
    const bool is_critical = *facts.pressure == MacPressure::kCritical;
    findings.push_back(
        {"memory_pressure", is_critical ? Severity::kProblem : Severity::kNote,
         fmt::format("macOS is short of memory ({})", is_critical ? "critical" : "warning"),
         "close other programs; the largest are shown by `top -o mem`"});
  } else if (facts.pressure) {
    add_ok(findings, "memory_pressure", "macOS is not short of memory");
  }
  if (!facts.gpu_limit_mb || facts.memory_bytes == 0) return;
  const uint64_t most = mac_gpu_bytes_max(facts.memory_bytes, *facts.gpu_limit_mb);
  const std::string sentence = fmt::format("the GPU may hold {} of {} of memory", bytes_text(most),
                                           bytes_text(facts.memory_bytes));
  if (facts.memory_bytes - most < kSystemBytesMin && *facts.gpu_limit_mb != 0) {
    return add_note(
        findings, "gpu_memory",
        fmt::format("{} (iogpu.wired_limit_mb), which leaves too little for macOS", sentence),
        "sudo sysctl iogpu.wired_limit_mb=0");
  }
  add_ok(findings, "gpu_memory",
         fmt::format("{} ({})", sentence,
                     *facts.gpu_limit_mb == 0 ? "about three quarters, macOS's own choice"
                                              : "iogpu.wired_limit_mb"));
}

void judge_open_files(const MacFacts& facts, Findings& findings) {
  if (!facts.files) return;
  const auto hard = facts.files->hard;
  if (hard && *hard < kOpenFilesMin) {
    return add_note(
        findings, "open_files",
        fmt::format("a program may open only {} files, and each connection is one", *hard),
        fmt::format("sudo launchctl limit maxfiles {} unlimited", kOpenFilesMin));
  }
  add_ok(findings, "open_files", "a node may open as many files as it needs");
}

void judge_launchd(const MacFacts& facts, Findings& findings) {
  const LaunchdService& service = facts.service;
  if (!service.is_loaded) {
    if (facts.plist.empty()) return;
    const char* const sudo = facts.domain == "system" ? "sudo " : "";
    return add_note(findings, "launchd",
                    fmt::format("{} is there, but launchd has not loaded it", facts.plist),
                    fmt::format("{}launchctl bootstrap {} {}", sudo, facts.domain, facts.plist));
  }
  if (service.state == "running") {
    return add_ok(findings, "launchd",
                  fmt::format("launchd runs lockstep (process {})", service.pid.value_or(0)));
  }
  const std::string log =
      service.stderr_path.empty() ? "the log of the service" : "tail " + service.stderr_path;
  const std::string mend =
      fmt::format("{}; then launchctl kickstart {}/lockstep", log, facts.domain);
  if (service.last_exit_code.value_or(0) != 0) {
    return add_problem(findings, "launchd",
                       fmt::format("lockstep ended with status {} under launchd ({} starts)",
                                   *service.last_exit_code, service.runs.value_or(1)),
                       mend);
  }
  add_note(findings, "launchd",
           fmt::format("launchd has loaded lockstep but does not run it ({})",
                       service.state.empty() ? "it does not say why" : service.state),
           mend);
}

}  // namespace

MacFacts collect_mac(const MacAnswers& answers) {
  MacFacts facts{.power = parse_power_settings(answers.power_settings),
                 .speed_limit_percent = parse_speed_limit_percent(answers.thermal),
                 .thermal_level = read_mac_thermal_level(),
                 .pressure = read_mac_pressure(),
                 .memory_bytes = mac_sysctl_number("hw.memsize").value_or(0),
                 .gpu_limit_mb = mac_sysctl_number("iogpu.wired_limit_mb"),
                 .files = parse_file_limits(answers.file_limits),
                 .service = parse_launchd_service(answers.user_service),
                 .domain = fmt::format("gui/{}", ::getuid()),
                 .plist = "",
                 .is_root = ::geteuid() == 0};
  if (!facts.service.is_loaded) {
    facts.service = parse_launchd_service(answers.system_service);
    if (facts.service.is_loaded) facts.domain = "system";
  }
  find_plist(facts);
  return facts;
}

Findings judge_mac(const MacFacts& facts) {
  Findings findings;
  judge_sleep(facts.power, findings);
  judge_mac_heat(facts, findings);
  judge_mac_memory(facts, findings);
  judge_open_files(facts, findings);
  judge_launchd(facts, findings);
  if (facts.is_root) {
    add_ok(findings, "power_meter", "the power that the chip takes can be read (powermetrics)");
  } else {
    add_note(findings, "power_meter",
             "only root can read the power that the chip takes, so a node does not show it",
             "sudo powermetrics --samplers cpu_power -n 1 prints it once");
  }
  return findings;
}

}  // namespace lockstep
