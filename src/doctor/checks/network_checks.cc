#include "doctor/checks/network_checks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/machine/mac_system.h"
#include "doctor/checks/network_trials.h"

namespace lockstep {
namespace {

constexpr int64_t kSlowMbitS = 1000;
constexpr int64_t kReceiveBytesMin = int64_t{1} << 20;

// Excludes those not designed for short paths with little loss.
constexpr std::array<std::string_view, 5> kFitControls{"cubic", "bbr", "reno", "dctcp", "htcp"};

bool is_a_way_out(const InterfaceFacts& interface) {
  return interface.is_up && !interface.is_loopback && !interface.addresses.empty();
}

std::vector<InterfaceFacts> ways_out(const NetworkFacts& facts) {
  std::vector<InterfaceFacts> found;
  for (const InterfaceFacts& one : facts.interfaces) {
    if (is_a_way_out(one)) found.push_back(one);
  }
  return found;
}

// How the owner of the machine does these things.
struct NetworkCommands {
  std::string negotiate, up, multicast, allow_multicast, tcp_user, udp_user;
};

// A command with its "{}" replaced.
std::string filled(std::string command, const std::string& value) {
  const size_t at = command.find("{}");
  return at == std::string::npos ? command : command.replace(at, 2, value);
}

NetworkCommands commands_of(bool is_mac) {
  if (is_mac) {
    return {.negotiate = "sudo ifconfig {} media autoselect",
            .up = "sudo ifconfig INTERFACE up",
            .multicast = "take it out of the cluster's network",
            .allow_multicast =
                "allow lockstep in the system's settings under Privacy & Security, "
                "Local Network",
            .tcp_user = "sudo lsof -nP -iTCP:{} -sTCP:LISTEN",
            .udp_user = "sudo lsof -nP -iUDP:{}"};
  }
  return {.negotiate = "sudo ethtool -s {} autoneg on",
          .up = "sudo ip link set INTERFACE up",
          .multicast = "sudo ip link set {} multicast on",
          .allow_multicast = "let 239.86.0.1 and ff02::8600 on UDP 8602 through the firewall",
          .tcp_user = "sudo ss -ltnp 'sport = :{}'",
          .udp_user = "sudo ss -lunp 'sport = :{}'"};
}

void judge_interface(const InterfaceFacts& interface, const NetworkFacts& facts, bool is_only,
                     Findings& findings) {
  if (interface.is_half_duplex) {
    add_problem(findings, "interface",
                fmt::format("{} sends and receives in turn (half duplex)", interface.name),
                filled(commands_of(facts.is_mac).negotiate, interface.name) + ", or another cable");
  }
  if (interface.speed_mbit_s > 0 && interface.speed_mbit_s < kSlowMbitS) {
    add_note(findings, "interface",
             fmt::format("{} runs at {} Mbit/s", interface.name, interface.speed_mbit_s),
             "look at the cable and the switch: both ends should agree on 1 Gbit/s or more");
  }
  if (interface.is_wireless && is_only) {
    add_note(findings, "interface",
             fmt::format("the only network is wireless ({}), which costs a millisecond or more for "
                         "each exchange of ranks",
                         interface.name),
             "join the machines with a cable");
  }
}

void judge_interfaces(const NetworkFacts& facts, Findings& findings) {
  const auto ways = ways_out(facts);
  if (ways.empty()) {
    return add_note(findings, "interface", "no network interface but loopback is up",
                    "plug a cable in, or " + commands_of(facts.is_mac).up);
  }
  const size_t before = findings.size();
  for (const InterfaceFacts& one : ways) judge_interface(one, facts, ways.size() == 1, findings);
  if (findings.size() > before) return;
  std::vector<std::string> names;
  names.reserve(ways.size());
  for (const InterfaceFacts& one : ways) names.push_back(one.name);
  add_ok(findings, "interface", fmt::format("up: {}", fmt::join(names, ", ")));
}

bool hears_itself(const InterfaceFacts& interface, const MulticastTest& test) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(), [&](const auto& one) {
    return std::count(test.heard_from.begin(), test.heard_from.end(), one) > 0;
  });
}

void judge_multicast(const NetworkFacts& facts, Findings& findings) {
  const char* const mend = "name a machine of the cluster instead: lockstep serve --join HOST";
  if (!facts.multicast.error.empty()) {
    return add_problem(findings, "multicast",
                       fmt::format("nodes cannot find each other: {}", facts.multicast.error),
                       mend);
  }
  const NetworkCommands commands = commands_of(facts.is_mac);
  std::vector<std::string> deaf;
  const auto ways = ways_out(facts);
  for (const InterfaceFacts& one : ways) {
    if (!one.can_multicast) {
      add_note(findings, "multicast",
               fmt::format("{} does not carry multicast, by which nodes find each other", one.name),
               fmt::format("{}, or {}", filled(commands.multicast, one.name), mend));
    } else if (!hears_itself(one, facts.multicast)) {
      deaf.push_back(one.name);
    }
  }
  if (deaf.empty()) {
    if (!ways.empty()) add_ok(findings, "multicast", "this machine hears its own multicast");
    return;
  }
  const Severity severity = deaf.size() == ways.size() ? Severity::kProblem : Severity::kNote;
  findings.push_back(
      {"multicast", severity,
       fmt::format("this machine does not hear its own multicast on {}", fmt::join(deaf, ", ")),
       fmt::format("{}, or {}", commands.allow_multicast, mend)});
}

void judge_tcp_port(bool is_taken, const std::string& where, const std::string& mend,
                    Findings& findings) {
  if (!is_taken) return;
  add_problem(findings, "port", fmt::format("another program uses {}", where), mend);
}

void judge_ports(const NetworkFacts& facts, Findings& findings) {
  if (facts.node_answers) {
    return add_ok(findings, "port", fmt::format("a node runs here on port {}", facts.http_port));
  }
  const size_t before = findings.size();
  const TakenPorts& taken = facts.taken;
  const NetworkCommands commands = commands_of(facts.is_mac);
  judge_tcp_port(taken.http, fmt::format("port {} and is not a node", facts.http_port),
                 filled(commands.tcp_user, std::to_string(facts.http_port)) +
                     " shows it; or lockstep serve --port 0",
                 findings);
  judge_tcp_port(taken.control, "port 8601, on which nodes call each other",
                 filled(commands.tcp_user, "8601") + " shows it", findings);
  judge_tcp_port(taken.beacon, "UDP port 8602, on which nodes find each other",
                 filled(commands.udp_user, "8602") + " shows it", findings);
  if (findings.size() == before) {
    add_ok(findings, "port", fmt::format("the ports {}, 8601 and 8602 are free", facts.http_port));
  }
}

void judge_tcp(const NetworkFacts& facts, Findings& findings) {
  const std::string& control = facts.congestion_control;
  if (!control.empty()) {
    if (std::count(kFitControls.begin(), kFitControls.end(), control) > 0) {
      add_ok(findings, "tcp", fmt::format("TCP's congestion control is {}", control));
    } else {
      add_note(findings, "tcp",
               fmt::format("TCP's congestion control is {}, which is not made for short distances",
                           control),
               "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic");
    }
  }
  if (facts.receive_bytes_max && *facts.receive_bytes_max < kReceiveBytesMin) {
    add_note(findings, "tcp_buffer",
             fmt::format("a TCP connection may keep only {} bytes, too few for a fast link",
                         *facts.receive_bytes_max),
             "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'");
  }
}

// "4096 131072 6291456": minimum, default, maximum.
std::optional<int64_t> third_number(const std::string& text) {
  std::istringstream numbers(text);
  int64_t least = 0, usual = 0, most = 0;
  return numbers >> least >> usual >> most ? std::optional(most) : std::nullopt;
}

}  // namespace

NetworkFacts collect_network(const SystemFiles& files, const NetworkQuestion& question) {
  NetworkFacts facts;
  facts.interfaces = question.interfaces;
  facts.multicast = try_multicast();
  facts.http_port = question.http_port;
  facts.is_mac = kIsMac;
  facts.node_answers = question.node_answers;
  facts.taken = try_ports(question.http_port);
  facts.congestion_control = files.text("/proc/sys/net/ipv4/tcp_congestion_control").value_or("");
  facts.receive_bytes_max = third_number(files.text("/proc/sys/net/ipv4/tcp_rmem").value_or(""));
  return facts;
}

Findings judge_network(const NetworkFacts& facts) {
  Findings findings;
  judge_interfaces(facts, findings);
  judge_multicast(facts, findings);
  judge_ports(facts, findings);
  judge_tcp(facts, findings);
  return findings;
}

}  // namespace lockstep
