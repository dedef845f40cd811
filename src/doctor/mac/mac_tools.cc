#include "doctor/mac/mac_tools.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/machine/program_output.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kFirewall = "/usr/libexec/ApplicationFirewall/socketfilterfw";
constexpr milliseconds kProfilerTimeout{10'000};  // it asks every port

}  // namespace

std::array<std::string, 2> launchd_services() {
  return {fmt::format("gui/{}/lockstep", ::getuid()), "system/lockstep"};
}

std::vector<MacTool> mac_tools() {
  const auto [user, system] = launchd_services();
  return {
      {&MacAnswers::hardware_ports, "networksetup", {"-listallhardwareports"}},
      {&MacAnswers::interfaces, "ifconfig", {"-a"}},
      {&MacAnswers::rdma_switch, "rdma_ctl", {"status"}},
      {&MacAnswers::power_settings, "pmset", {"-g"}},
      {&MacAnswers::thermal, "pmset", {"-g", "therm"}},
      {&MacAnswers::firewall, kFirewall, {"--getglobalstate"}},
      {&MacAnswers::firewall_block, kFirewall, {"--getblockall"}},
      {&MacAnswers::file_limits, "launchctl", {"limit", "maxfiles"}},
      {&MacAnswers::user_service, "launchctl", {"print", user}, kMacToolTimeout, true},
      {&MacAnswers::system_service, "launchctl", {"print", system}, kMacToolTimeout, true},
      {&MacAnswers::thunderbolt,
       "system_profiler",
       {"SPThunderboltDataType", "-json"},
       kProfilerTimeout},
  };
}

MacAnswers ask_mac_tools() {
  MacAnswers answers;
  const Clock::time_point deadline = Clock::now() + kMacToolsTimeout;
  for (const MacTool& tool : mac_tools()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    auto said = run_program({.program = tool.program,
                             .arguments = tool.arguments,
                             .timeout = std::min(tool.timeout, left)});
    if (said.ok() && said.value().status == 0) {
      answers.*tool.answer = std::move(said.value().output);
    }
  }
  return answers;
}

}  // namespace lockstep
