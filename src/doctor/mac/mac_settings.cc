#include "doctor/mac/mac_settings.h"

#include "base/machine/tool_text.h"

namespace lockstep {
namespace {

// The text after "key = " (or "key: "), if this is the line's key.
std::optional<std::string_view> value_at(std::string_view line, std::string_view key,
                                         std::string_view separator) {
  const auto rest = after_key(line, key);
  return rest ? after_key(*rest, separator) : std::nullopt;
}

void add_service_line(std::string_view line, LaunchdService& service) {
  if (const auto state = value_at(line, "state", "=")) service.state = *state;
  if (const auto path = value_at(line, "path", "=")) service.path = *path;
  if (const auto log = value_at(line, "stderr path", "=")) service.stderr_path = *log;
  if (const auto pid = value_at(line, "pid", "=")) service.pid = leading_number(*pid);
  if (const auto runs = value_at(line, "runs", "=")) service.runs = leading_number(*runs);
  if (const auto code = value_at(line, "last exit code", "=")) {
    service.last_exit_code = leading_number(*code);
  }
}

}  // namespace

PowerSettings parse_power_settings(std::string_view text) {
  PowerSettings settings;
  for (const std::string_view line : tool_lines(text)) {
    const auto words = tool_words(line);
    const auto value = words.size() >= 2 ? leading_number(words[1]) : std::nullopt;
    if (!value) continue;
    if (words[0] == "sleep") settings.sleep_minutes = value;
    if (words[0] == "SleepDisabled") settings.is_sleep_disabled = *value == 1;
    if (words[0] == "autorestart") settings.restarts_after_power_failure = *value == 1;
    if (words[0] == "lowpowermode" || words[0] == "powermode") {
      settings.is_low_power = settings.is_low_power || *value == 1;
    }
  }
  return settings;
}

std::optional<uint64_t> parse_speed_limit_percent(std::string_view text) {
  for (const std::string_view line : tool_lines(text)) {
    // Some versions print a list: " - CPU_Speed_Limit = 100".
    const auto value = value_at(after_key(line, "- ").value_or(line), "CPU_Speed_Limit", "=");
    const auto percent = value ? leading_number(*value) : std::nullopt;
    if (percent && *percent <= 100) return percent;
  }
  return std::nullopt;
}

MacFirewall parse_mac_firewall(std::string_view global_state, std::string_view block_all) {
  constexpr std::string_view kState = "(State = ";
  const size_t at = global_state.find(kState);
  if (at == std::string_view::npos) return MacFirewall::kUnknown;
  const auto state = leading_number(global_state.substr(at + kState.size()));
  if (state == 0) return MacFirewall::kOff;
  if (state == 2) return MacFirewall::kBlocksAll;
  if (state != 1) return MacFirewall::kUnknown;
  // "Firewall has block all state set to disabled." does not end in the same word.
  const bool blocks = block_all.find("block all state set to enabled") != std::string_view::npos;
  return blocks ? MacFirewall::kBlocksAll : MacFirewall::kOn;
}

RdmaSwitch parse_rdma_switch(std::string_view text) {
  const std::string_view word = trimmed(text);
  if (word.empty()) return RdmaSwitch::kNoTool;
  if (word == "enabled") return RdmaSwitch::kEnabled;
  return word == "disabled" ? RdmaSwitch::kDisabled : RdmaSwitch::kUnknown;
}

std::optional<FileLimits> parse_file_limits(std::string_view text) {
  for (const std::string_view line : tool_lines(text)) {
    const auto words = tool_words(line);
    if (words.size() < 3 || words[0] != "maxfiles") continue;
    const auto soft = leading_number(words[1]);
    const auto hard = leading_number(words[2]);
    if (!soft || (!hard && words[2] != "unlimited")) return std::nullopt;
    return FileLimits{.soft = *soft, .hard = hard};
  }
  return std::nullopt;
}

LaunchdService parse_launchd_service(std::string_view text) {
  LaunchdService service;
  int depth = 0;  // the service's own block is the first
  for (const std::string_view whole : tool_lines(text)) {
    const std::string_view line = trimmed(whole);
    if (line.ends_with('{')) {
      ++depth;
      service.is_loaded = true;
    } else if (line == "}") {
      --depth;
    } else if (depth == 1) {
      add_service_line(line, service);
    }
  }
  return service;
}

HardwarePorts parse_hardware_ports(std::string_view text) {
  HardwarePorts ports;
  std::string name;
  for (const std::string_view line : tool_lines(text)) {
    if (const auto port = after_key(line, "Hardware Port:")) {
      name = *port;
    } else if (const auto device = after_key(line, "Device:")) {
      if (!name.empty() && !device->empty() && ports.size() < kHardwarePortsMax) {
        ports.emplace(name, *device);
      }
      name.clear();
    }
  }
  return ports;
}

std::string interface_of_rdma_device(std::string_view device) {
  constexpr std::string_view kPrefix = "rdma_";
  return device.starts_with(kPrefix) ? std::string(device.substr(kPrefix.size())) : "";
}

}  // namespace lockstep
