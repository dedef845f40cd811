#include "doctor/checks/rdma_checks.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "base/machine/mac_interfaces.h"
#include "base/machine/mac_system.h"
#include "doctor/checks/thunderbolt_checks.h"
#include "doctor/mac/mac_settings.h"

namespace lockstep {
namespace {

// Each connection to a peer has 33 frames of 64 KiB, and a group has several peers and rails.
constexpr uint64_t kLockedBytesMin = uint64_t{64} << 20;

constexpr const char* kLockMend =
    "printf '* - memlock unlimited\\n' | sudo tee /etc/security/limits.d/lockstep.conf, then log "
    "in again; of a service: LimitMEMLOCK=infinity";

constexpr const char* kDeviceMend =
    "ls -l /dev/infiniband; in a container start it with --device=/dev/infiniband";
// mlx issues 3207 and 3910: repeated opening, and programs that were killed, use the driver up.
constexpr const char* kAppleDeviceMend =
    "sudo shutdown -r now; only a restart gives back what Apple's driver has used up";

// NVIDIA (Mellanox) network cards: all since ConnectX-2 support RDMA.
bool has_rdma_card(const SystemFiles& files) {
  constexpr const char* kPci = "/sys/bus/pci/devices";
  for (const std::string& name : files.names(kPci)) {
    const std::string folder = fmt::format("{}/{}/", kPci, name);
    if (files.text(folder + "vendor") != "0x15b3") continue;
    if (files.text(folder + "class").value_or("").starts_with("0x02")) return true;
  }
  return false;
}

void judge_bridge(const RdmaFacts& facts, Findings& findings) {
  const auto& members = facts.bridge_members;
  if (members.empty()) return;
  const auto cabled = std::count_if(
      facts.thunderbolt.begin(), facts.thunderbolt.end(), [&](const ThunderboltPort& port) {
        return !port.peer_domain.empty() &&
               std::count(members.begin(), members.end(), port.interface) > 0;
      });
  const std::string mend = fmt::format(
      "sudo ifconfig {} down, and give each port an address of its own in the system's network "
      "settings",
      facts.bridge);
  if (cabled >= 2) {
    return add_problem(findings, "thunderbolt_bridge",
                       fmt::format("the Thunderbolt bridge joins {} cables; in a ring of Macs "
                                   "packets then circle without end, and RDMA cannot use the ports",
                                   cabled),
                       mend);
  }
  add_note(findings, "thunderbolt_bridge",
           fmt::format("the Thunderbolt bridge holds {} ports, which RDMA cannot use meanwhile",
                       members.size()),
           mend);
}

void judge_apple(const RdmaFacts& facts, Findings& findings) {
  switch (parse_rdma_switch(facts.apple_switch)) {
    case RdmaSwitch::kNoTool:
      add_ok(findings, "rdma_switch",
             "this macOS has no RDMA over Thunderbolt (it comes with 26.2 and Thunderbolt 5)");
      return;
    case RdmaSwitch::kEnabled:
      add_ok(findings, "rdma_switch", "RDMA over Thunderbolt is switched on");
      return judge_bridge(facts, findings);
    case RdmaSwitch::kDisabled:
      return add_problem(findings, "rdma_switch", "RDMA over Thunderbolt is switched off",
                         "start the recovery system (hold the power button), open its Terminal and "
                         "type: rdma_ctl enable");
    case RdmaSwitch::kUnknown:
      return add_note(findings, "rdma_switch",
                      "`rdma_ctl status` says neither enabled nor disabled, so that nobody knows "
                      "whether RDMA over Thunderbolt is on");
  }
}

void judge_library(const RdmaFacts& facts, Findings& findings) {
  const bool has_hardware = !facts.kernel_devices.empty();
  if (!facts.verbs.has_library) {
    if (has_hardware || facts.has_card_without_driver) {
      return add_problem(findings, "rdma_library",
                         fmt::format("this machine has an RDMA card, but {}", facts.verbs.problem),
                         "sudo apt-get install libibverbs1 ibverbs-providers");
    }
    if (parse_rdma_switch(facts.apple_switch) == RdmaSwitch::kEnabled) {
      return add_problem(findings, "rdma_library",
                         fmt::format("RDMA is switched on, but {}", facts.verbs.problem),
                         "update macOS to 26.2 or newer, the same on all Macs");
    }
    return add_ok(findings, "rdma_library", "no RDMA here; links between machines go over TCP");
  }
  add_ok(findings, "rdma_library",
         fmt::format("the RDMA library {} is installed", facts.verbs.library));
  if (!facts.verbs.problem.empty()) {
    add_problem(findings, "rdma_device", facts.verbs.problem,
                facts.is_apple ? kAppleDeviceMend : kDeviceMend);
  } else if (facts.verbs.ports.empty() && has_hardware) {
    add_problem(findings, "rdma_device",
                fmt::format("the kernel has the RDMA device {}, but the library shows none",
                            facts.kernel_devices.front()),
                "sudo apt-get install ibverbs-providers; in a container start it with "
                "--device=/dev/infiniband");
  } else if (facts.verbs.ports.empty() && facts.has_card_without_driver) {
    add_problem(findings, "rdma_device", "this machine has an RDMA card whose driver is not loaded",
                "sudo modprobe mlx5_ib");
  } else if (facts.verbs.ports.empty() && !facts.is_apple) {
    add_ok(findings, "rdma_device", "no RDMA device; links between machines go over TCP");
  }
}

bool is_local(const std::string& address, const std::vector<InterfaceFacts>& interfaces) {
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const InterfaceFacts& one) {
    return one.is_up && std::count(one.addresses.begin(), one.addresses.end(), address) > 0;
  });
}

// A Mac has an RDMA device for each Thunderbolt port; those without another Mac are not active.
void judge_idle_mac_port(const RdmaFacts& facts, const VerbsPortReport& port, Findings& findings) {
  const std::string interface = interface_of_rdma_device(port.device);
  const auto cabled = std::find_if(facts.thunderbolt.begin(), facts.thunderbolt.end(),
                                   [&](const ThunderboltPort& one) {
                                     return !one.peer_domain.empty() && one.interface == interface;
                                   });
  if (cabled == facts.thunderbolt.end()) return;
  const std::string sentence =
      fmt::format("the RDMA port {} is not active, although its cable leads to {}", port.device,
                  cabled->device);
  if (!cabled->peer_offers_rdma) {
    return add_problem(findings, "rdma_port", sentence + ", which offers no RDMA",
                       "type rdma_ctl enable in the recovery system of that Mac too; macOS 26.2 or "
                       "newer on both");
  }
  add_problem(findings, "rdma_port", sentence,
              fmt::format("pull the cable at both ends and put it in again; sudo ifconfig {} up",
                          interface));
}

void judge_rdma_port(const RdmaFacts& facts, const VerbsPortReport& port, bool another_is_active,
                     Findings& findings) {
  const std::string name = fmt::format("{} port {}", port.device, port.port);
  if (!port.is_active && facts.is_apple) return judge_idle_mac_port(facts, port, findings);
  if (!port.is_active) {
    const Severity severity = another_is_active ? Severity::kNote : Severity::kProblem;
    findings.push_back({"rdma_port", severity, fmt::format("the RDMA port {} is not active", name),
                        "put the cable in at both ends and switch its network interface on: "
                        "sudo ip link set INTERFACE up"});
    return;
  }
  const bool has_local =
      std::any_of(port.addresses.begin(), port.addresses.end(),
                  [&](const auto& one) { return is_local(one, facts.interfaces); });
  if (has_local)
    return add_ok(findings, "rdma_port", fmt::format("the RDMA port {} is active", name));
  if (port.is_ethernet || facts.is_apple) {
    return add_problem(
        findings, "rdma_gid",
        fmt::format("the RDMA port {} is active, but no address of this machine is among its GIDs",
                    name),
        facts.is_apple
            ? fmt::format(
                  "give its network interface an address: sudo ifconfig {} inet 10.86.0.1/24",
                  interface_of_rdma_device(port.device))
            : "give its network interface an address: sudo ip address add 10.86.0.1/24 dev "
              "INTERFACE");
  }
  add_note(
      findings, "rdma_gid",
      fmt::format("the InfiniBand port {} carries no IP address, by which nodes find it", name),
      "for RDMA make it an Ethernet port (NVIDIA: sudo mlxconfig -d DEVICE set LINK_TYPE_P1=2); "
      "for TCP: sudo modprobe ib_ipoib, then sudo ip address add 10.86.0.1/24 dev ib0");
}

void judge_lock(const RdmaFacts& facts, Findings& findings) {
  if (facts.verbs.ports.empty() || facts.is_apple) return;
  if (facts.is_root || !facts.locked_bytes_max) {
    return add_ok(findings, "memlock", "memory for RDMA may be locked without a limit");
  }
  const std::string sentence =
      fmt::format("this user may lock {} of memory", bytes_text(*facts.locked_bytes_max));
  if (*facts.locked_bytes_max < kLockedBytesMin) {
    return add_problem(findings, "memlock",
                       fmt::format("{}, but RDMA needs {}", sentence, bytes_text(kLockedBytesMin)),
                       kLockMend);
  }
  add_ok(findings, "memlock", sentence);
}

}  // namespace

void add_apple_rdma(const MacAnswers& mac, RdmaFacts& facts) {
  facts.is_apple = true;
  facts.apple_switch = mac.rdma_switch;
  facts.thunderbolt = thunderbolt_facts(mac).ports;
  const HardwarePorts ports = parse_hardware_ports(mac.hardware_ports);
  const auto named = ports.find("Thunderbolt Bridge");
  facts.bridge = named == ports.end() ? "bridge0" : named->second;
  const auto interfaces = parse_ifconfig(mac.interfaces);
  const MacInterface* const bridge = find_interface(interfaces, facts.bridge);
  if (bridge != nullptr && bridge->is_up) facts.bridge_members = bridge->members;
}

RdmaFacts collect_rdma(const SystemFiles& files, const std::vector<InterfaceFacts>& interfaces,
                       const MacAnswers& mac) {
  RdmaFacts facts;
  facts.verbs = report_verbs();
  facts.kernel_devices = files.names("/sys/class/infiniband");
  facts.has_card_without_driver = facts.kernel_devices.empty() && has_rdma_card(files);
  facts.interfaces = interfaces;
  facts.is_root = ::geteuid() == 0;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    facts.locked_bytes_max = limit.rlim_cur;
  }
  if constexpr (kIsMac) add_apple_rdma(mac, facts);
  return facts;
}

Findings judge_rdma(const RdmaFacts& facts) {
  Findings findings;
  if (facts.is_apple) judge_apple(facts, findings);
  judge_library(facts, findings);
  const auto& ports = facts.verbs.ports;
  const bool has_active = std::any_of(ports.begin(), ports.end(),
                                      [](const VerbsPortReport& port) { return port.is_active; });
  for (const VerbsPortReport& port : ports) judge_rdma_port(facts, port, has_active, findings);
  judge_lock(facts, findings);
  return findings;
}

}  // namespace lockstep
