#include "doctor/checks/thunderbolt_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/files/mapped_file.h"

namespace lockstep {
namespace {

std::string port_text(const ThunderboltPort& port) {
  const std::string interface = port.interface.empty() ? "" : fmt::format(" ({})", port.interface);
  return fmt::format("Thunderbolt port {}{}", port.receptacle, interface);
}

void judge_mac_link(const ThunderboltPort& port, Findings& findings) {
  if (is_port_without_rdma(port)) {
    return add_problem(findings, "thunderbolt_port",
                       fmt::format("{} leads to {}, but the port next to the Ethernet socket of a "
                                   "Mac Studio does no RDMA",
                                   port_text(port), port.device),
                       "put this cable into another Thunderbolt port");
  }
  if (port.gbit_s > 0 && port.gbit_s < kRdmaGbitMin) {
    return add_note(findings, "thunderbolt",
                    fmt::format("{} leads to {} with {} Gbit/s, too slow for RDMA", port_text(port),
                                port.device, port.gbit_s),
                    "use a Thunderbolt 5 cable between Thunderbolt 5 ports (80 Gbit/s)");
  }
  add_ok(findings, "thunderbolt",
         fmt::format("{} leads to {} with {} Gbit/s", port_text(port), port.device, port.gbit_s));
}

std::string cable_text(const ThunderboltCable& cable) {
  return fmt::format("{} port {} and {} port {}", cable.a, cable.port_a, cable.b, cable.port_b);
}

bool has_cable(const std::vector<ThunderboltCable>& cables, const std::string& a,
               const std::string& b) {
  return std::any_of(cables.begin(), cables.end(), [&](const ThunderboltCable& one) {
    return one.is_seen_by_both && one.a == a && one.b == b;
  });
}

}  // namespace

ThunderboltFacts thunderbolt_facts(const MacAnswers& answers) {
  if (answers.thunderbolt.empty()) {
    return {.problem = "system_profiler does not tell this Mac's Thunderbolt ports", .ports = {}};
  }
  auto ports = parse_thunderbolt(answers.thunderbolt);
  if (!ports.ok()) return {.problem = ports.error().message, .ports = {}};
  const HardwarePorts names = parse_hardware_ports(answers.hardware_ports);
  for (ThunderboltPort& port : ports.value()) {
    const auto found = names.find(fmt::format("Thunderbolt {}", port.receptacle));
    if (found != names.end()) port.interface = found->second;
  }
  return {.problem = "", .ports = std::move(ports.value())};
}

Findings judge_thunderbolt(const ThunderboltFacts& facts) {
  Findings findings;
  if (!facts.problem.empty()) {
    add_note(findings, "thunderbolt", facts.problem);
    return findings;
  }
  int free = 0;
  int64_t free_gbit_s = 0;
  for (const ThunderboltPort& port : facts.ports) {
    if (port.device.empty()) {
      ++free;
      free_gbit_s = std::max(free_gbit_s, port.gbit_s_max);
    } else if (port.peer_domain.empty()) {
      add_ok(findings, "thunderbolt", fmt::format("{} holds {}", port_text(port), port.device));
    } else {
      judge_mac_link(port, findings);
    }
  }
  if (free > 0) {
    add_ok(findings, "thunderbolt",
           fmt::format("{} Thunderbolt {} free (up to {} Gbit/s)", free,
                       free == 1 ? "port is" : "ports are", free_gbit_s));
  }
  return findings;
}

Result<MacPorts> read_mac_ports(const std::string& path) {
  const auto text = read_small_file(path);
  if (!text.ok()) {
    return Error{ErrorCode::kNotFound, fmt::format("{} cannot be read", path)};
  }
  auto ports = parse_thunderbolt(text.value());
  if (!ports.ok()) {
    return Error{ports.error().code, fmt::format("{}: {}", path, ports.error().message)};
  }
  return MacPorts{std::filesystem::path(path).stem().string(), std::move(ports.value())};
}

Findings judge_cables(const std::vector<MacPorts>& machines) {
  Findings findings;
  const auto cables = thunderbolt_cables(machines);
  for (const ThunderboltCable& cable : cables) {
    const std::string sentence = fmt::format("a cable joins {}", cable_text(cable));
    if (!cable.is_seen_by_both) {
      add_problem(findings, "cable", fmt::format("{}, but only one end sees it", sentence),
                  "pull it at both ends and put it in again, then save both outputs again");
    } else if (cable.gbit_s > 0 && cable.gbit_s < kRdmaGbitMin) {
      add_note(findings, "cable",
               fmt::format("{} with {} Gbit/s, too slow for RDMA", sentence, cable.gbit_s),
               "use a Thunderbolt 5 cable between Thunderbolt 5 ports (80 Gbit/s)");
    } else {
      add_ok(findings, "cable", fmt::format("{} with {} Gbit/s", sentence, cable.gbit_s));
    }
  }
  for (size_t i = 0; i < machines.size(); ++i) {
    for (size_t k = i + 1; k < machines.size(); ++k) {
      if (has_cable(cables, machines[i].name, machines[k].name)) continue;
      add_note(
          findings, "cable",
          fmt::format("no cable joins {} and {}", machines[i].name, machines[k].name),
          "put a Thunderbolt 5 cable between them; without one they exchange over the network");
    }
  }
  return findings;
}

}  // namespace lockstep
