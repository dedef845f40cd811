// How a machine comes into a cluster when `lockstep serve` starts: it is in one already, joins one
// with a PIN that the user types or with a token, or founds one of its own. Blocks, with deadlines,
// but for what the user types. Its threads have ended when it returns.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/identity.h"
#include "net/frame_connection.h"

// So that who includes this need not read CLI11.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep {

struct ClusterFlags {
  ClusterFlags() =
      default;  // no aggregate: GCC 12 takes the string of a nested one for uninitialised

  std::vector<std::string> join;
  std::string token;
  std::string name;
  int control_port = 8601;
  bool no_beacon = false;
  double memory_gib = 0;  // 0: most of what is free
  bool spare = false;
  std::string data_network;
  std::string keep = "all";
};

// The options that they became; --alone excludes them.
std::vector<CLI::Option*> add_cluster_flags(CLI::App& command, ClusterFlags& flags);

struct ClusterEntry {
  Identity identity;
  std::vector<NetAddress> join;  // of --join
  bool has_founded = false;      // just now
};

Result<ClusterEntry> enter_cluster(const ClusterFlags& flags);

}  // namespace lockstep
