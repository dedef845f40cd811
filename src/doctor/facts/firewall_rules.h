// The effect of nftables and iptables rules on a new connection to a port of this machine, as far
// as their text shows it. Pure functions for doctor/checks/firewall_checks.h. Jumps to other chains
// are not followed: they give kDepends.
#pragma once

#include <string_view>

namespace lockstep {

enum class Passage {
  kOpen,
  kDepends,  // on the caller, or on rules that are not followed
  kClosed,
};

struct PortQuestion {
  std::string_view protocol;  // "tcp", "udp"
  int port = 0;
};

// `rules` as `nft list ruleset` prints them.
Passage nft_passage(std::string_view rules, PortQuestion question);
// `rules` as `iptables -S` prints them.
Passage iptables_passage(std::string_view rules, PortQuestion question);

}  // namespace lockstep
