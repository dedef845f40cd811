#include "doctor/checks/cluster_checks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/version.h"

namespace lockstep {
namespace {

constexpr double kSlowShare = 0.5;  // of the fastest link's bandwidth
constexpr double kLateFactor = 4;   // of the lowest link latency
constexpr double kSkewMaxSeconds = 5;
constexpr size_t kNamedMax = 6;  // in a sentence; the rest is counted

using Pair = std::pair<std::string, std::string>;

Pair ordered(const std::string& a, const std::string& b) {
  return a < b ? Pair(a, b) : Pair(b, a);
}

void judge_versions(const ReportedCluster& facts, Findings& findings) {
  if (!facts.version.empty() && facts.version != kVersion) {
    add_note(findings, "version",
             fmt::format("the node that runs here is version {}, this program is {}", facts.version,
                         kVersion),
             "restart the node");
  }
  bool is_same = true;
  for (const ClusterNodeFacts& node : facts.nodes) {
    if (node.version.empty() || node.version == facts.version) continue;
    is_same = false;
    add_problem(
        findings, "version",
        fmt::format("{} has version {}, this node has {}", node.name, node.version, facts.version),
        fmt::format("install the same version of lockstep on {}", node.name));
  }
  if (is_same && facts.nodes.size() > 1) {
    add_ok(findings, "version", fmt::format("all nodes have version {}", facts.version));
  }
}

void judge_nodes(const ReportedCluster& facts, Findings& findings) {
  if (!facts.beacon_problem.empty()) {
    add_problem(findings, "beacon", facts.beacon_problem,
                "name a machine of the cluster instead: lockstep serve --join HOST");
  }
  size_t alive_count = 0;
  for (const ClusterNodeFacts& node : facts.nodes) {
    const bool is_alive = node.is_self || node.state == "alive";
    alive_count += is_alive ? 1 : 0;
    if (!is_alive) {
      const Severity severity = node.state == "absent" ? Severity::kNote : Severity::kProblem;
      findings.push_back({"node", severity, fmt::format("{} is {}", node.name, node.state),
                          node.note.empty() ? fmt::format("start lockstep on {}, and look at its "
                                                          "cable and its firewall there",
                                                          node.name)
                                            : node.note});
    } else if (!node.note.empty()) {
      add_note(findings, "node", fmt::format("{}: {}", node.name, node.note));
    }
    if (node.clock_skew_s && std::abs(*node.clock_skew_s) > kSkewMaxSeconds) {
      add_problem(
          findings, "clock_skew",
          fmt::format("the clock of {} is {:.0f} s {} this machine's", node.name,
                      std::abs(*node.clock_skew_s), *node.clock_skew_s > 0 ? "ahead of" : "behind"),
          fmt::format("on {}: sudo timedatectl set-ntp true", node.name));
    }
  }
  if (alive_count > 0 && alive_count == facts.nodes.size()) {
    add_ok(findings, "node",
           alive_count == 1 ? "this node is alone in its cluster"
                            : fmt::format("all {} nodes are connected", alive_count));
  }
}

// Pairs of machines without a direct link: ranks there reach each other by relays.
std::vector<Pair> missing_pairs(const ClusterModelFacts& model) {
  std::set<Pair> joined;
  for (const ClusterLinkFacts& link : model.links) joined.insert(ordered(link.a, link.b));
  std::vector<Pair> missing;
  for (size_t i = 0; i < model.machines.size(); ++i) {
    for (size_t k = i + 1; k < model.machines.size(); ++k) {
      const Pair pair = ordered(model.machines[i], model.machines[k]);
      if (joined.count(pair) == 0) missing.push_back(pair);
    }
  }
  return missing;
}

std::string pairs_text(const std::vector<Pair>& pairs) {
  std::vector<std::string> names;
  for (const Pair& pair : pairs) {
    if (names.size() == kNamedMax) break;
    names.push_back(fmt::format("{} - {}", pair.first, pair.second));
  }
  const size_t left = pairs.size() - names.size();
  return left == 0 ? fmt::format("{}", fmt::join(names, ", "))
                   : fmt::format("{} and {} more", fmt::join(names, ", "), left);
}

void judge_mesh(const ClusterModelFacts& model, Findings& findings) {
  if (model.links.empty() || model.machines.size() < 2) return;
  const std::vector<Pair> missing = missing_pairs(model);
  if (missing.empty()) {
    return add_ok(findings, "mesh",
                  fmt::format("every pair of the {} machines of {} has a direct link",
                              model.machines.size(), model.name));
  }
  add_note(findings, "mesh",
           fmt::format("{} has no direct link for {}; sums go by relays there", model.name,
                       pairs_text(missing)),
           fmt::format("for a mesh of {} machines join {} more pair{} with a cable",
                       model.machines.size(), missing.size(), missing.size() == 1 ? "" : "s"));
}

void judge_speeds(const ClusterModelFacts& model, Findings& findings) {
  double fastest_gbit_s = 0, quickest_us = 0;
  for (const ClusterLinkFacts& link : model.links) {
    fastest_gbit_s = std::max(fastest_gbit_s, link.gbit_s);
    if (link.latency_us > 0 && (quickest_us == 0 || link.latency_us < quickest_us)) {
      quickest_us = link.latency_us;
    }
  }
  for (const ClusterLinkFacts& link : model.links) {
    const std::string name = fmt::format("the link {} - {} ({})", link.a, link.b, link.path);
    if (link.gbit_s > 0 && link.gbit_s < kSlowShare * fastest_gbit_s) {
      add_note(findings, "slow_link",
               fmt::format("{} has {:.3g} Gbit/s, the fastest has {:.3g}", name, link.gbit_s,
                           fastest_gbit_s),
               "look at its cable and at both ends' ports: lockstep doctor there");
    }
    if (link.latency_us > kLateFactor * quickest_us && quickest_us > 0) {
      add_note(findings, "slow_link",
               fmt::format("{} takes {:.3g} us, the quickest takes {:.3g}", name, link.latency_us,
                           quickest_us),
               "look for a switch, a wireless hop or power saving between them");
    }
    if (!link.reason.empty()) {
      add_note(findings, "no_rdma", fmt::format("{} has no RDMA: {}", name, link.reason),
               "lockstep doctor on both machines");
    }
  }
}

// The network of each link: one of its own for each cable, or that of the nodes.
void judge_networks(const ClusterModelFacts& model, Findings& findings) {
  std::vector<std::string> used;
  size_t count = 0;
  for (const ClusterLinkFacts& link : model.links) {
    if (!link.network_note.empty()) {
      add_note(findings, "data_network",
               fmt::format("the link {} - {} ({}) is in no data network: {}", link.a, link.b,
                           link.path, link.network_note));
    }
    if (link.a_host.empty() || ++count > kNamedMax) continue;
    const std::string device = link.device.empty() ? "" : fmt::format(" ({})", link.device);
    used.push_back(
        fmt::format("{} {}{} - {} {}", link.a, link.a_host, device, link.b, link.b_host));
  }
  if (used.empty()) return;
  const std::string more =
      count > kNamedMax ? fmt::format(" and {} more", count - kNamedMax) : std::string();
  add_ok(findings, "link_address",
         fmt::format("the links of {}: {}{}", model.name, fmt::join(used, ", "), more));
}

// RDMA is not encrypted, so it is used only where it is asked for.
void judge_unasked_rdma(const ClusterModelFacts& model, const std::string& own_device,
                        Findings& findings) {
  if (own_device.empty()) return;
  const auto link = std::find_if(
      model.links.begin(), model.links.end(),
      [](const ClusterLinkFacts& one) { return one.path == "tcp" && one.reason.empty(); });
  if (link == model.links.end()) return;
  add_note(findings, "no_rdma",
           fmt::format("{} joins {} and {} by TCP, because RDMA was not asked for; {} is active "
                       "here",
                       model.name, link->a, link->b, own_device),
           "start every node with --link verbs, on a network that only these machines use: RDMA is "
           "not encrypted");
}

void judge_cluster_models(const ReportedCluster& facts, Findings& findings) {
  for (const ClusterModelFacts& model : facts.models) {
    if (model.state == "failed") {
      add_problem(findings, "model", fmt::format("{} has failed: {}", model.name, model.error));
    } else if (!model.state.empty() && model.state != "ready") {
      add_note(findings, "model",
               model.error.empty()
                   ? fmt::format("{} is {}", model.name, model.state)
                   : fmt::format("{} is {}: {}", model.name, model.state, model.error));
    }
    judge_mesh(model, findings);
    judge_speeds(model, findings);
    judge_networks(model, findings);
    judge_unasked_rdma(model, facts.own_rdma_device, findings);
  }
}

}  // namespace

Findings judge_cluster(const ReportedCluster& facts) {
  Findings findings;
  if (!facts.answers) return findings;
  judge_versions(facts, findings);
  judge_nodes(facts, findings);
  judge_cluster_models(facts, findings);
  return findings;
}

}  // namespace lockstep
