// The settings of a Mac, read from what its tools print. Pure functions over any bytes: what a text
// does not say stays unknown. Any thread.
//
// Sources of the formats:
//   pmset -g, pmset -g therm            man 1 pmset; outputs on
//   real-world-systems.com/docs/pmset.1.html socketfilterfw                      its own --help;
//   "Firewall is enabled. (State = 1)" launchctl limit, launchctl print    man 1 launchctl rdma_ctl
//   status                     Apple TN3205; "enabled" or "disabled" networksetup
//   -listallhardwareports  man 8 networksetup; github.com/nonocast/me issue 129
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// `pmset -g`: " sleep                1 (sleep prevented by sharingd)".
struct PowerSettings {
  std::optional<uint64_t> sleep_minutes;             // 0: it never sleeps
  bool is_sleep_disabled = false;                    // "SleepDisabled 1"
  bool is_low_power = false;                         // "lowpowermode 1", or "powermode 1"
  std::optional<bool> restarts_after_power_failure;  // "autorestart"
};
PowerSettings parse_power_settings(std::string_view text);

// `pmset -g therm` on Intel: "CPU_Speed_Limit = 85". Apple silicon prints notes instead: nullopt.
std::optional<uint64_t> parse_speed_limit_percent(std::string_view text);

enum class MacFirewall { kUnknown, kOff, kOn, kBlocksAll };
// "(State = 0)", 1 and 2 of --getglobalstate; --getblockall says "enabled" for the second.
MacFirewall parse_mac_firewall(std::string_view global_state, std::string_view block_all);

enum class RdmaSwitch { kNoTool, kEnabled, kDisabled, kUnknown };
RdmaSwitch parse_rdma_switch(std::string_view text);

// `launchctl limit maxfiles`: "maxfiles    256            unlimited".
struct FileLimits {
  uint64_t soft = 0;
  std::optional<uint64_t> hard;  // nullopt: unlimited
};
std::optional<FileLimits> parse_file_limits(std::string_view text);

// `launchctl print DOMAIN/lockstep`: lines "key = value" of the service itself; those of the blocks
// in it (environment, endpoints) are left out.
struct LaunchdService {
  bool is_loaded = false;
  std::string state;        // "running", "waiting", "not running"
  std::string path;         // of the plist
  std::string stderr_path;  // its log; empty: none
  std::optional<uint64_t> pid;
  std::optional<uint64_t> runs;
  std::optional<uint64_t> last_exit_code;  // nullopt: "(never exited)"
};
LaunchdService parse_launchd_service(std::string_view text);

// `networksetup -listallhardwareports`: the name of a port to its interface, "Thunderbolt 1" to
// "en2", "Wi-Fi" to "en1".
using HardwarePorts = std::map<std::string, std::string>;
inline constexpr size_t kHardwarePortsMax = 256;
HardwarePorts parse_hardware_ports(std::string_view text);

// The interface of an RDMA device: "rdma_en2" is en2's. Empty: it has another name.
std::string interface_of_rdma_device(std::string_view device);

}  // namespace lockstep
