// MacAnswers: the outputs of macOS's own tools that the doctor reads, asked once for all checks.
// Each tool has a deadline and an output limit (base/machine/program_output.h); one that is missing
// or fails leaves an empty text. None of them needs root. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace lockstep {

struct MacAnswers {
  std::string thunderbolt;     // system_profiler SPThunderboltDataType -json
  std::string hardware_ports;  // networksetup -listallhardwareports
  std::string interfaces;      // ifconfig -a
  std::string rdma_switch;     // rdma_ctl status
  std::string power_settings;  // pmset -g
  std::string thermal;         // pmset -g therm
  std::string firewall;        // socketfilterfw --getglobalstate
  std::string firewall_block;  // socketfilterfw --getblockall
  std::string file_limits;     // launchctl limit maxfiles
  std::string user_service;    // launchctl print gui/UID/lockstep
  std::string system_service;  // launchctl print system/lockstep
};

inline constexpr std::chrono::milliseconds kMacToolTimeout{3'000};  // for most of them
struct MacTool {
  std::string MacAnswers::*answer;
  std::string program;
  std::vector<std::string> arguments;
  std::chrono::milliseconds timeout = kMacToolTimeout;
  bool shows_environment = false;  // of the service, which may hold keys
};
std::vector<MacTool> mac_tools();

// launchd's names of the service: the user's, and the system's.
std::array<std::string, 2> launchd_services();

// For all tools together; those that it leaves no time for are not asked.
inline constexpr std::chrono::seconds kMacToolsTimeout{15};

// Asks the tools whatever the system is. The doctor does so only on macOS; tests put programs of
// these names into PATH.
MacAnswers ask_mac_tools();

}  // namespace lockstep
