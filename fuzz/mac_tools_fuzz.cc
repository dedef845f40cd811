// links: doctor
// Any output of macOS's tools is read within the parsers' limits, and the findings made from it are
// sentences. The texts of all tools look alike to a parser, so each gets every input.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/machine/mac_interfaces.h"
#include "base/machine/powermetrics.h"
#include "doctor/checks/mac_checks.h"
#include "doctor/checks/rdma_checks.h"
#include "doctor/checks/thunderbolt_checks.h"
#include "doctor/mac/mac_settings.h"
#include "doctor/mac/thunderbolt.h"

using namespace lockstep;

namespace {

void check_findings(const Findings& findings) {
  for (const Finding& one : findings) {
    LOCKSTEP_CHECK(!one.check.empty() && !one.sentence.empty());
  }
}

void check_parsers(std::string_view text) {
  const auto interfaces = parse_ifconfig(text);
  LOCKSTEP_CHECK(interfaces.size() <= kMacInterfacesMax);
  for (const MacInterface& one : interfaces) {
    LOCKSTEP_CHECK(one.members.size() <= kMacMembersMax && one.media_mbit_s >= 0);
  }
  LOCKSTEP_CHECK(parse_hardware_ports(text).size() <= kHardwarePortsMax);
  LOCKSTEP_CHECK(parse_speed_limit_percent(text).value_or(0) <= 100);
  if (const auto ports = parse_thunderbolt(text); ports.ok()) {
    LOCKSTEP_CHECK(ports.value().size() <= kThunderboltPortsMax);
    const MacPorts one{"a", ports.value()}, other{"b", ports.value()};
    LOCKSTEP_CHECK(thunderbolt_cables({one}).empty());
    check_findings(judge_cables({one, other}));
  }
}

// Pieces of an output have the sum of the whole.
void check_power(std::string_view text) {
  PowermetricsSum whole, pieces;
  whole.add(text);
  pieces.add(text.substr(0, text.size() / 2));
  pieces.add(text.substr(text.size() / 2));
  LOCKSTEP_CHECK(whole.joules() >= 0 && whole.joules() == pieces.joules());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_parsers(text);
  check_power(text);
  const MacAnswers answers{.thunderbolt = text,
                           .hardware_ports = text,
                           .interfaces = text,
                           .rdma_switch = text,
                           .power_settings = text,
                           .thermal = text,
                           .firewall = text,
                           .firewall_block = text,
                           .file_limits = text,
                           .user_service = text,
                           .system_service = text};
  check_findings(judge_mac(collect_mac(answers)));
  check_findings(judge_thunderbolt(thunderbolt_facts(answers)));
  RdmaFacts rdma;
  add_apple_rdma(answers, rdma);
  check_findings(judge_rdma(rdma));
  return 0;
}
