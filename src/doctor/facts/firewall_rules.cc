#include "doctor/facts/firewall_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

struct FilterRule {
  std::string protocol;                    // empty: any
  std::vector<std::pair<int, int>> ports;  // first and last; empty: any
  bool accepts = false;
  bool drops = false;
  bool jumps = false;
  bool is_for_some = false;  // only callers or interfaces that it names
  bool names_interface = false;
  bool is_for_none = false;  // for loopback, or for existing connections
};

struct InputChain {
  bool drops_by_default = false;
  std::vector<FilterRule> rules;
};

// List separators count as spaces, so that "{ 22, 8601 }" is two words.
Words words_of(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == ',' || c == '{' || c == '}' || c == ';'; },
      ' ');
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool has_word(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_any(const Words& words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](std::string_view one) { return has_word(words, one); });
}

// "8601", "8600-8610" (nft) or "8600:8610" (iptables).
bool parse_ports(const std::string& word, std::pair<int, int>& ports) {
  const char* const end = word.data() + word.size();
  auto parsed = std::from_chars(word.data(), end, ports.first);
  if (parsed.ec != std::errc()) return false;
  ports.second = ports.first;
  if (parsed.ptr == end) return true;
  if (*parsed.ptr != '-' && *parsed.ptr != ':') return false;
  parsed = std::from_chars(parsed.ptr + 1, end, ports.second);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// The ports after the word "dport" (nft) or "--dport", "--dports" (iptables).
std::vector<std::pair<int, int>> ports_of(const Words& words) {
  std::vector<std::pair<int, int>> found;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].ends_with("dport") && !words[i].ends_with("dports")) continue;
    const size_t before = found.size();
    std::pair<int, int> ports;
    for (size_t k = i + 1; k < words.size() && parse_ports(words[k], ports); ++k) {
      found.push_back(ports);
    }
    if (found.size() == before) found.emplace_back(-1, -1);  // named or negated: none of ours
  }
  return found;
}

FilterRule nft_rule(const Words& words) {
  const bool names_state = has_word(words, "state");
  return {.protocol = has_word(words, "udp")   ? (has_word(words, "tcp") ? "" : "udp")
                      : has_word(words, "tcp") ? "tcp"
                      : has_any(words, {"icmp", "icmpv6", "igmp"}) ? "icmp"
                                                                   : "",
          .ports = ports_of(words),
          .accepts = has_word(words, "accept"),
          .drops = has_any(words, {"drop", "reject"}),
          .jumps = has_any(words, {"jump", "goto"}),
          .is_for_some = has_any(words, {"saddr", "daddr", "iif", "iifname", "pkttype", "limit",
                                         "sport", "mark", "fib", "status", "!="}),
          .names_interface = has_any(words, {"iif", "iifname"}),
          .is_for_none = (has_any(words, {"lo", "\"lo\""}) && !has_word(words, "!=")) ||
                         (names_state && !has_word(words, "new"))};
}

// iptables modules that do not select callers.
constexpr std::array<std::string_view, 6> kPlainMatches{"tcp",       "udp",   "multiport",
                                                        "conntrack", "state", "comment"};

FilterRule iptables_rule(const Words& words) {
  FilterRule rule{.ports = ports_of(words)};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& value = words[i + 1];
    if (words[i] == "-p") rule.protocol = value;
    const bool is_negated = i > 0 && words[i - 1] == "!";
    if (words[i] == "-i" && value == "lo" && !is_negated) rule.is_for_none = true;
    if (words[i] == "-i") rule.names_interface = true;
    const bool is_match =
        words[i] == "-m" && std::count(kPlainMatches.begin(), kPlainMatches.end(), value) == 0;
    if (is_match || words[i] == "-s" || words[i] == "-d" || words[i] == "-i" || words[i] == "!") {
      rule.is_for_some = true;
    }
    if ((words[i] == "--state" || words[i] == "--ctstate") && !has_word(words, "NEW")) {
      rule.is_for_none = true;
    }
    if (words[i] != "-j" && words[i] != "-g") continue;
    rule.accepts = value == "ACCEPT";
    rule.drops = value == "DROP" || value == "REJECT";
    rule.jumps = !rule.accepts && !rule.drops && value != "LOG" && value != "RETURN";
  }
  return rule;
}

// The first rule that matches the packet decides. Blocks of single callers are ignored.
Passage passage_of(const InputChain& chain, PortQuestion question) {
  bool may_pass = false, may_stop = false;
  for (const FilterRule& rule : chain.rules) {
    const bool names_port =
        std::any_of(rule.ports.begin(), rule.ports.end(), [&](const std::pair<int, int>& ports) {
          return ports.first <= question.port && question.port <= ports.second;
        });
    if (rule.is_for_none || (!rule.protocol.empty() && rule.protocol != question.protocol) ||
        (!rule.ports.empty() && !names_port)) {
      continue;
    }
    if (rule.jumps || (rule.accepts && rule.is_for_some)) {
      may_pass = true;
    } else if (rule.accepts) {
      return may_stop ? Passage::kDepends : Passage::kOpen;
    } else if (rule.drops && !rule.is_for_some) {
      return may_pass ? Passage::kDepends : Passage::kClosed;
    } else if (rule.drops) {
      may_stop = may_stop || rule.names_interface;
    }
  }
  if (!chain.drops_by_default) return may_stop ? Passage::kDepends : Passage::kOpen;
  return may_pass ? Passage::kDepends : Passage::kClosed;
}

// The chains for packets to this machine; each must let them pass.
std::vector<InputChain> nft_input_chains(std::string_view rules) {
  std::vector<InputChain> chains;
  bool is_in_input = false;
  std::istringstream lines{std::string(rules)};
  for (std::string line; std::getline(lines, line);) {
    const Words words = words_of(line);
    if (words.empty()) continue;
    if (words.front() == "chain") {
      is_in_input = false;
    } else if (words.front() == "type" && has_word(words, "hook")) {
      is_in_input = has_word(words, "filter") && has_word(words, "input");
      if (is_in_input) chains.push_back({.drops_by_default = has_word(words, "drop")});
    } else if (is_in_input) {
      chains.back().rules.push_back(nft_rule(words));
    }
  }
  return chains;
}

}  // namespace

Passage nft_passage(std::string_view rules, PortQuestion question) {
  Passage worst = Passage::kOpen;
  for (const InputChain& chain : nft_input_chains(rules)) {
    worst = std::max(worst, passage_of(chain, question));
  }
  return worst;
}

Passage iptables_passage(std::string_view rules, PortQuestion question) {
  InputChain chain;
  std::istringstream lines{std::string(rules)};
  for (std::string line; std::getline(lines, line);) {
    const Words words = words_of(line);
    if (words.size() < 3 || words[1] != "INPUT") continue;
    if (words[0] == "-P") chain.drops_by_default = words[2] != "ACCEPT";
    if (words[0] == "-A") chain.rules.push_back(iptables_rule(words));
  }
  return passage_of(chain, question);
}

}  // namespace lockstep
