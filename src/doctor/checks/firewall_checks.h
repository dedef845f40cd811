// Firewalls that block other nodes: nftables, iptables, ufw, firewalld, and macOS's. Only root can
// read rules.
#pragma once

#include <string>
#include <vector>

#include "doctor/facts/finding.h"
#include "doctor/facts/network_facts.h"
#include "doctor/facts/system_files.h"
#include "doctor/mac/mac_settings.h"
#include "doctor/mac/mac_tools.h"

namespace lockstep {

struct FirewallFacts {
  bool is_root = false;
  bool has_tools = false;  // nft or iptables is installed, so there may be rules
  std::string nft_rules;   // as `nft list ruleset` prints them; empty: none, or unreadable
  std::string iptables_rules;
  bool ufw_is_on = false;
  std::string ufw_rules;  // /etc/ufw/user.rules; empty: unreadable
  bool firewalld_is_on = false;
  std::string firewalld_ports;  // as `firewall-cmd --list-ports` prints them
  MacFirewall apple = MacFirewall::kUnknown;
  std::string subnet;  // of this machine, for commands; empty: unknown
};

FirewallFacts collect_firewall(const SystemFiles& files,
                               const std::vector<InterfaceFacts>& interfaces,
                               const MacAnswers& mac = {});
Findings judge_firewall(const FirewallFacts& facts);

}  // namespace lockstep
