// Firewalls: rules as their tools print them.
#include "doctor/checks/firewall_checks.h"

#include "doctor/check_support.h"
#include "doctor/facts/firewall_rules.h"

using namespace lockstep;

namespace {

constexpr PortQuestion kControl{"tcp", 8601};
constexpr PortQuestion kBeacon{"udp", 8602};

// A chain like the one in Debian's /etc/nftables.conf, containing `rules`.
std::string nft_chain(const std::string& policy, const std::string& rules) {
  return "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; "
         "policy " +
         policy + ";\n\t\tct state established,related accept\n\t\tiif \"lo\" accept\n" + rules +
         "\t}\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy "
         "drop;\n\t}\n}\n";
}

}  // namespace

TEST_CASE("nftables: what happens to a new connection to a port") {
  struct Case {
    const char* policy;
    const char* rules;
    Passage tcp;
    Passage udp;
  };
  for (const Case& one : {
           Case{"accept", "", Passage::kOpen, Passage::kOpen},
           Case{"drop", "", Passage::kClosed, Passage::kClosed},
           Case{"drop", "\t\ttcp dport 8601 accept\n", Passage::kOpen, Passage::kClosed},
           Case{"drop", "\t\ttcp dport { 22, 8600-8610 } accept\n\t\tudp dport 8602 accept\n",
                Passage::kOpen, Passage::kOpen},
           Case{"drop", "\t\tip saddr 10.0.0.0/24 accept\n", Passage::kDepends, Passage::kDepends},
           Case{"drop", "\t\tip protocol icmp accept\n", Passage::kClosed, Passage::kClosed},
           Case{"accept", "\t\ttcp dport 8601 drop\n", Passage::kClosed, Passage::kOpen},
           Case{"accept", "\t\tip saddr 192.0.2.1 drop\n", Passage::kOpen, Passage::kOpen},
           Case{"accept", "\t\tcounter packets 0 bytes 0 reject with icmpx admin-prohibited\n",
                Passage::kClosed, Passage::kClosed},
           Case{"drop", "\t\ttcp dport ssh accept\n", Passage::kClosed, Passage::kClosed},
           Case{"drop", "\t\tct mark 0x1 accept\n", Passage::kDepends, Passage::kDepends},
           Case{"drop", "\t\tudp sport 53 accept\n", Passage::kClosed, Passage::kDepends},
           Case{"accept", "\t\tiifname != \"lo\" drop\n", Passage::kDepends, Passage::kDepends},
           Case{"drop", "\t\tjump from_outside\n", Passage::kDepends, Passage::kDepends},
       }) {
    const std::string rules = nft_chain(one.policy, one.rules);
    CHECK_MESSAGE(nft_passage(rules, kControl) == one.tcp, rules);
    CHECK_MESSAGE(nft_passage(rules, kBeacon) == one.udp, rules);
  }
  CHECK(nft_passage("", kControl) == Passage::kOpen);
  CHECK(nft_passage("no rules } of { any , kind ;", kControl) == Passage::kOpen);
}

TEST_CASE("iptables: what happens to a new connection to a port") {
  struct Case {
    const char* rules;
    Passage tcp;
    Passage udp;
  };
  for (const Case& one : {
           Case{"-P INPUT ACCEPT\n-P FORWARD DROP\n", Passage::kOpen, Passage::kOpen},
           Case{"-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate "
                "RELATED,ESTABLISHED -j ACCEPT\n",
                Passage::kClosed, Passage::kClosed},
           Case{"-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 8601 -j ACCEPT\n", Passage::kOpen,
                Passage::kClosed},
           Case{"-P INPUT DROP\n-A INPUT -p udp -m multiport --dports 53,8600:8610 -j ACCEPT\n",
                Passage::kClosed, Passage::kOpen},
           Case{"-P INPUT DROP\n-A INPUT -s 10.0.0.0/24 -j ACCEPT\n", Passage::kDepends,
                Passage::kDepends},
           Case{"-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 8601 -j REJECT\n",
                Passage::kClosed, Passage::kOpen},
           Case{"-P INPUT ACCEPT\n-A INPUT -j ufw-before-input\n-A INPUT -j DROP\n",
                Passage::kDepends, Passage::kDepends},
           Case{"-P INPUT DROP\n-A INPUT -m set --match-set friends src -j ACCEPT\n",
                Passage::kDepends, Passage::kDepends},
           Case{"-P INPUT ACCEPT\n-A INPUT ! -i lo -p tcp -j DROP\n", Passage::kDepends,
                Passage::kOpen},
           Case{"", Passage::kOpen, Passage::kOpen},
       }) {
    CHECK_MESSAGE(iptables_passage(one.rules, kControl) == one.tcp, std::string(one.rules));
    CHECK_MESSAGE(iptables_passage(one.rules, kBeacon) == one.udp, std::string(one.rules));
  }
}

TEST_CASE("a firewall that blocks nodes is a problem, with the command for this network") {
  FirewallFacts facts{.is_root = true, .has_tools = true, .subnet = "192.168.7.0/24"};
  check_all_well(judge_firewall(facts));
  facts.nft_rules = nft_chain("drop", "");
  auto finding = found(judge_firewall(facts), "firewall");
  REQUIRE(finding.has_value());
  CHECK(finding->severity == Severity::kProblem);
  CHECK(finding->sentence == "the rules of nftables keep other nodes away from tcp port 8601");
  CHECK(finding->mend.find("192.168.7.0/24") != std::string::npos);
  facts.nft_rules = "";
  facts.iptables_rules = "-P INPUT DROP\n-A INPUT -s 10.0.0.0/24 -j ACCEPT\n";
  finding = found(judge_firewall(facts), "firewall");
  CHECK(finding->severity == Severity::kNote);
  CHECK(finding->mend == "sudo iptables -I INPUT -s 192.168.7.0/24 -j ACCEPT");
}

TEST_CASE("rules that only root can read are a note, and so are ufw and firewalld then") {
  FirewallFacts facts{.has_tools = true, .subnet = "10.1.0.0/16"};
  CHECK(severity_of(judge_firewall(facts), "firewall") == Severity::kNote);
  facts.ufw_is_on = true;
  CHECK(severity_of(judge_firewall(facts), "firewall") == Severity::kNote);
  facts.ufw_rules = "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n";
  auto finding = found(judge_firewall(facts), "firewall");
  CHECK(finding->severity == Severity::kProblem);
  CHECK(finding->mend == "sudo ufw allow from 10.1.0.0/16");
  facts.ufw_rules = "### tuple ### allow any any 0.0.0.0/0 any 10.1.0.0/16 in\n";
  CHECK(severity_of(judge_firewall(facts), "firewall") == Severity::kOk);
  facts.ufw_is_on = false;
  facts.firewalld_is_on = true;
  CHECK(severity_of(judge_firewall(facts), "firewall") == Severity::kNote);
  facts.firewalld_ports = "8601/tcp 8602/udp\n";
  CHECK(severity_of(judge_firewall(facts), "firewall") == Severity::kOk);
  FirewallFacts apple{.apple = MacFirewall::kOn};
  CHECK(severity_of(judge_firewall(apple), "firewall") == Severity::kNote);
  apple.apple = MacFirewall::kBlocksAll;
  CHECK(severity_of(judge_firewall(apple), "firewall") == Severity::kProblem);
  apple.apple = MacFirewall::kOff;
  check_all_well(judge_firewall(apple));
}
