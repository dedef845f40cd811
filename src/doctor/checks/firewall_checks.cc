#include "doctor/checks/firewall_checks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/machine/program_output.h"
#include "cluster/peers/peers.h"
#include "doctor/facts/firewall_rules.h"

namespace lockstep {
namespace {

constexpr std::array<PortQuestion, 2> kPorts{
    {{"tcp", Peers::kControlPort}, {"udp", Peers::kBeaconPort}}};

std::string output_of(const std::string& program, std::vector<std::string> arguments) {
  const auto answer = run_program({.program = program, .arguments = std::move(arguments)});
  return answer.ok() && answer.value().status == 0 ? answer.value().output : "";
}

std::string subnet_of(const FirewallFacts& facts) {
  return facts.subnet.empty() ? "10.0.0.0/24" : facts.subnet;
}

// Links between ranks use ports that the system picks, so machines are allowed instead of ports.
std::string ufw_mend(const FirewallFacts& facts) {
  return fmt::format("sudo ufw allow from {}", subnet_of(facts));
}

// "### tuple ### allow tcp 8601 0.0.0.0/0 any 0.0.0.0/0 in": action, protocol, port.
bool ufw_allows(const std::string& rules, PortQuestion question) {
  std::istringstream lines(rules);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hashes, tuple, end, action, protocol, port;
    words >> hashes >> tuple >> end >> action >> protocol >> port;
    if (tuple != "tuple" || action != "allow") continue;
    if (protocol != "any" && protocol != question.protocol) continue;
    if (port == "any" || port == std::to_string(question.port)) return true;
  }
  return false;
}

void judge_ufw(const FirewallFacts& facts, Findings& findings) {
  if (facts.ufw_rules.empty()) {
    return add_note(findings, "firewall",
                    "the firewall ufw is on, and may keep other nodes away (its rules are root's)",
                    ufw_mend(facts));
  }
  for (const PortQuestion& question : kPorts) {
    if (ufw_allows(facts.ufw_rules, question)) continue;
    return add_problem(findings, "firewall",
                       fmt::format("the firewall ufw keeps other nodes away from {} port {}",
                                   question.protocol, question.port),
                       ufw_mend(facts));
  }
  add_ok(findings, "firewall", "the firewall ufw is on and lets other nodes in");
}

void judge_firewalld(const FirewallFacts& facts, Findings& findings) {
  const std::string mend = fmt::format(
      "sudo firewall-cmd --permanent --zone=trusted --add-source={} && sudo "
      "firewall-cmd --reload",
      subnet_of(facts));
  const bool names_both = std::all_of(kPorts.begin(), kPorts.end(), [&](const PortQuestion& one) {
    return facts.firewalld_ports.find(fmt::format("{}/{}", one.port, one.protocol)) !=
           std::string::npos;
  });
  if (names_both) {
    return add_ok(findings, "firewall", "firewalld is on and its ports 8601 and 8602 are open");
  }
  add_note(findings, "firewall", "firewalld is on, and may keep other nodes away", mend);
}

void judge_rules(const FirewallFacts& facts, Findings& findings) {
  for (const PortQuestion& question : kPorts) {
    const Passage nft = nft_passage(facts.nft_rules, question);
    const Passage passage = std::max(nft, iptables_passage(facts.iptables_rules, question));
    if (passage == Passage::kOpen) continue;
    const bool is_nft = passage == nft;
    const std::string mend =
        is_nft ? fmt::format(
                     "sudo nft insert rule inet filter input ip saddr {} accept (with the "
                     "names of your table and chain)",
                     subnet_of(facts))
               : fmt::format("sudo iptables -I INPUT -s {} -j ACCEPT", subnet_of(facts));
    const std::string where = fmt::format("{} port {}", question.protocol, question.port);
    const char* const whose = is_nft ? "nftables" : "iptables";
    if (passage == Passage::kClosed) {
      return add_problem(findings, "firewall",
                         fmt::format("the rules of {} keep other nodes away from {}", whose, where),
                         mend);
    }
    return add_note(findings, "firewall",
                    fmt::format("the rules of {} let only some callers reach {}", whose, where),
                    mend);
  }
  add_ok(findings, "firewall", "no firewall keeps other nodes away");
}

void judge_apple_firewall(MacFirewall state, Findings& findings) {
  const std::string tool = "sudo /usr/libexec/ApplicationFirewall/socketfilterfw";
  if (state == MacFirewall::kBlocksAll) {
    return add_problem(findings, "firewall",
                       "the firewall of macOS blocks all incoming connections, and so other nodes",
                       tool + " --setblockall off");
  }
  if (state == MacFirewall::kOn) {
    return add_note(findings, "firewall",
                    "the firewall of macOS is on and asks once whether lockstep may be called",
                    tool + " --add \"$(which lockstep)\"");
  }
  add_ok(findings, "firewall", "the firewall of macOS is off");
}

}  // namespace

FirewallFacts collect_firewall(const SystemFiles& files,
                               const std::vector<InterfaceFacts>& interfaces,
                               const MacAnswers& mac) {
  FirewallFacts facts{.is_root = ::geteuid() == 0};
  for (const char* tool : {"/usr/sbin/nft", "/sbin/nft", "/usr/sbin/iptables", "/sbin/iptables"}) {
    facts.has_tools = facts.has_tools || files.exists(tool);
  }
  if (facts.is_root && facts.has_tools) {
    facts.nft_rules = output_of("nft", {"list", "ruleset"});
    facts.iptables_rules = output_of("iptables", {"-S"});
  }
  const std::string ufw = "\n" + files.text("/etc/ufw/ufw.conf").value_or("");
  facts.ufw_is_on = ufw.find("\nENABLED=yes") != std::string::npos;
  facts.ufw_rules = files.text("/etc/ufw/user.rules").value_or("");
  facts.firewalld_is_on = files.exists("/run/firewalld.pid") || files.exists("/run/firewalld");
  if (facts.firewalld_is_on) facts.firewalld_ports = output_of("firewall-cmd", {"--list-ports"});
  facts.apple = parse_mac_firewall(mac.firewall, mac.firewall_block);
  for (const InterfaceFacts& interface : interfaces) {
    if (facts.subnet.empty() && interface.is_up && !interface.is_loopback) {
      facts.subnet = interface.subnet_v4;
    }
  }
  return facts;
}

Findings judge_firewall(const FirewallFacts& facts) {
  Findings findings;
  if (facts.apple != MacFirewall::kUnknown) judge_apple_firewall(facts.apple, findings);
  if (facts.ufw_is_on) {
    judge_ufw(facts, findings);
  } else if (facts.firewalld_is_on) {
    judge_firewalld(facts, findings);
  } else if (facts.has_tools && !facts.is_root) {
    add_note(findings, "firewall", "only root can read the firewall's rules",
             "sudo lockstep doctor shows them, if other nodes cannot reach this one");
  } else if (facts.apple == MacFirewall::kUnknown) {
    judge_rules(facts, findings);
  }
  return findings;
}

}  // namespace lockstep
