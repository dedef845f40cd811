// The cluster, as the node on this machine reports it: its nodes, their versions and clocks, the
// models, and the links between machines: their addresses, and those missing, slow, over TCP
// instead of RDMA, or outside the data networks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/finding.h"
#include "json/json.h"

namespace lockstep {

struct ClusterNodeFacts {
  std::string name;
  std::string version;
  std::string state;  // "alive", "suspect", "dead", "foreign", "absent"
  std::string note;
  bool is_self = false;
  std::optional<double> clock_skew_s;  // against the node that reports
};

struct ClusterLinkFacts {
  std::string a;  // the two machines, or the ranks if machines are unknown
  std::string b;
  std::string path;       // "tcp", "rdma"...
  std::string reason;     // why there is no RDMA; empty: it was not refused
  double latency_us = 0;  // 0: not measured
  double gbit_s = 0;
  std::string a_host{};  // the addresses in use; empty: not said
  std::string b_host{};
  std::string device{};        // the RDMA device of `a`; empty: none is used
  std::string network_note{};  // why it uses no data network; empty: none is missed
};

struct ClusterModelFacts {
  std::string name;
  std::string state;
  std::string error;
  std::vector<std::string> machines;    // that hold its ranks, each once
  std::vector<ClusterLinkFacts> links;  // between machines
};

struct ReportedCluster {
  bool answers = false;
  std::string version;
  std::string beacon_problem;  // why nodes cannot find each other; empty: they can
  std::vector<ClusterNodeFacts> nodes;
  std::vector<ClusterModelFacts> models;
  std::string own_rdma_device{};  // of this machine, with an active port; empty: none
};

// Reads GET /cluster/status as far as fields exist: it may be of another version.
ReportedCluster reported_cluster(const Json& status);
Findings judge_cluster(const ReportedCluster& facts);

}  // namespace lockstep
