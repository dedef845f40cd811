#include "doctor/mac/mac_tools.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/machine/program_output.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kFirewall = "/usr/libexec/ApplicationFirewall/socketfilterfw";
constexpr milliseconds kToolTimeout{3'000};
constexpr milliseconds kProfilerTimeout{10'000};  // it asks every port

struct MacTool {
  std::string MacAnswers::*answer;
  std::string program;
  std::vector<std::string> arguments;
  milliseconds timeout = kToolTimeout;
};

std::vector<MacTool> mac_tools() {
  const std::string user = fmt::format("gui/{}/lockstep", ::getuid());
  return {
      {&MacAnswers::hardware_ports, "networksetup", {"-listallhardwareports"}},
      {&MacAnswers::interfaces, "ifconfig", {"-a"}},
      {&MacAnswers::rdma_switch, "rdma_ctl", {"status"}},
      {&MacAnswers::power_settings, "pmset", {"-g"}},
      {&MacAnswers::thermal, "pmset", {"-g", "therm"}},
      {&MacAnswers::firewall, kFirewall, {"--getglobalstate"}},
      {&MacAnswers::firewall_block, kFirewall, {"--getblockall"}},
      {&MacAnswers::file_limits, "launchctl", {"limit", "maxfiles"}},
      {&MacAnswers::user_service, "launchctl", {"print", user}},
      {&MacAnswers::system_service, "launchctl", {"print", "system/lockstep"}},
      {&MacAnswers::thunderbolt,
       "system_profiler",
       {"SPThunderboltDataType", "-json"},
       kProfilerTimeout},
  };
}

}  // namespace

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
