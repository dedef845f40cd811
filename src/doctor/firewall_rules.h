// What rules of nftables and iptables do with a new connection to a port of this machine, as far as
// their text tells. Pure functions for doctor/firewall_checks.h. Rules in chains that are jumped to
// are not followed: then it depends.
#pragma once

#include <string_view>

namespace lockstep {

enum class Passage {
  kOpen,
  kDepends,  // on who calls, or on rules that are not followed
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
